"""JSON shapes of proxies: what server and client both speak."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.enums import ProxyHealthStatus
from coder.api.health import ProxyHealthReport
from coder.api.struct import ApiStruct


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


class WorkspaceProxyBuildInfo(ApiStruct):
    workspace_proxy: bool
    dashboard_url: str
