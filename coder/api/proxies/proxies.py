"""JSON shapes of proxies, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.site.health import ProxyHealthReport
from coder.base.json_types import Json

ProxyHealthStatus = Literal["ok", "unhealthy", "unreachable", "unregistered"]


class CreateWorkspaceProxyRequest(ApiStruct):
    name: str
    display_name: str
    icon: str


class PatchWorkspaceProxy(ApiStruct):
    id: UUID
    name: str
    display_name: str
    icon: str
    regenerate_token: bool


class Region(ApiStruct):
    id: UUID
    name: str
    display_name: str
    icon_url: str
    healthy: bool
    path_app_url: str
    wildcard_hostname: str


class RegionsResponse(ApiStruct):
    regions: list[Region]


class WorkspaceProxyStatus(ApiStruct):
    status: ProxyHealthStatus
    checked_at: datetime
    report: ProxyHealthReport | UnsetType = UNSET


class WorkspaceProxy(ApiStruct):
    created_at: datetime
    deleted: bool
    derp_enabled: bool
    derp_only: bool
    display_name: str
    healthy: bool
    icon_url: str
    id: UUID
    name: str
    path_app_url: str
    updated_at: datetime
    version: str
    wildcard_hostname: str
    status: WorkspaceProxyStatus | UnsetType = UNSET


class WorkspaceProxiesResponse(ApiStruct):
    regions: list[WorkspaceProxy]
    """Regions, the primary first."""


RegionTypes = Region | WorkspaceProxy


class Replica(ApiStruct):
    id: UUID
    hostname: str
    created_at: datetime
    relay_address: str
    region_id: int
    error: str
    database_latency: int


class UpdateWorkspaceProxyResponse(ApiStruct):
    proxy: WorkspaceProxy
    proxy_token: str


class RegisterWorkspaceProxyRequest(ApiStruct):
    """Report of a proxy every half minute. `replica_id` identifies one of its processes."""

    access_url: str
    wildcard_hostname: str
    derp_enabled: bool
    derp_only: bool
    replica_id: UUID
    replica_hostname: str
    replica_error: str
    replica_relay_address: str
    version: str


class RegisterWorkspaceProxyResponse(ApiStruct):
    derp_mesh_key: str
    derp_region_id: int
    derp_map: Json
    derp_force_websockets: bool
    sibling_replicas: list[Replica]


class DeregisterWorkspaceProxyRequest(ApiStruct):
    replica_id: UUID


class CryptoKey(ApiStruct):
    feature: str
    secret: str
    "Hexadecimal."
    deletes_at: datetime
    """Time of deletion; the zero time while it is in use."""
    sequence: int
    starts_at: datetime


class CryptoKeysResponse(ApiStruct):
    crypto_keys: list[CryptoKey]


class SignedAppRequest(ApiStruct):
    """Application request received by a proxy."""

    access_method: str
    base_path: str
    username_or_id: str
    workspace_name_or_id: str
    agent_name_or_id: str = ""
    app_slug_or_port: str = ""
    app_prefix: str = ""


class MayStayRequest(ApiStruct):
    """Visitor with a ticket alone, and the ticket's content."""

    app_request: SignedAppRequest
    user_id: UUID
    workspace_id: UUID
    agent_id: UUID
    key_id: str = ""


class MayStayResponse(ApiStruct):
    may_stay: bool


class IssueTokenRequest(ApiStruct):
    app_request: SignedAppRequest
    session_token: str = ""
    path_app_base_url: str = ""
    app_hostname: str = ""
    app_path: str = ""
    app_query: str = ""


class IssueSignedAppTokenResponse(ApiStruct):
    signed_token_str: str


class AppStat(ApiStruct):
    """A session in an application, recorded by a proxy."""

    user_id: UUID
    workspace_id: UUID
    agent_id: UUID
    access_method: str
    slug_or_port: str
    session_id: UUID
    session_started_at: datetime
    session_ended_at: datetime
    requests: int


class ReportAppStatsRequest(ApiStruct):
    stats: list[AppStat]
