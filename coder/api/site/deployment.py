"""JSON shapes of deployment, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.people.groups import Group
from coder.api.people.user_names import ReducedUser
from coder.api.workspaces.workspace_requests import WorkspaceConnectionLatencyMS
from coder.base.json_types import Json

Entitlement = Literal["entitled", "grace_period", "not_entitled"]

Experiment = Literal[
    "ai-gateway-seat-exclusion",
    "agent-lifecycle-hooks",
    "auto-fill-parameters",
    "chat-advisor",
    "chat-virtual-desktop",
    "example",
    "mcp-server-http",
    "mcp-tool-search",
    "nats_pubsub",
    "notifications",
    "oauth2",
    "workspace-build-updates",
    "workspace-capable-licensing",
    "workspace-usage",
]


class ACLAvailable(ApiStruct):
    users: list[ReducedUser]
    groups: list[Group]


Addon = Literal["ai_governance"]


class AppHostResponse(ApiStruct):
    host: str


class BannerConfig(ApiStruct):
    enabled: bool
    background_color: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class LinkConfig(ApiStruct):
    name: str
    target: str
    icon: str
    location: str | UnsetType = UNSET


class AppearanceConfig(ApiStruct):
    application_name: str
    logo_url: str
    docs_url: str
    service_banner: BannerConfig
    announcement_banners: list[BannerConfig]
    support_links: list[LinkConfig] | UnsetType = UNSET


class AvailableExperiments(ApiStruct):
    safe: list[Experiment]


class DebugProfileOptions(ApiStruct):
    Duration: int
    Profiles: list[str]


class SessionCountDeploymentStats(ApiStruct):
    vscode: int
    ssh: int
    jetbrains: int
    reconnecting_pty: int


class WorkspaceDeploymentStats(ApiStruct):
    pending: int
    building: int
    running: int
    failed: int
    stopped: int
    connection_latency_ms: WorkspaceConnectionLatencyMS
    rx_bytes: int
    tx_bytes: int


class DeploymentStats(ApiStruct):
    aggregated_from: datetime
    collected_at: datetime
    next_update_at: datetime
    workspaces: WorkspaceDeploymentStats
    session_count: SessionCountDeploymentStats


class Entitlements(ApiStruct):
    features: dict[str, Feature]
    warnings: list[str]
    errors: list[str]
    has_license: bool
    trial: bool
    require_telemetry: bool
    refreshed_at: datetime


class ExternalAgentCredentials(ApiStruct):
    command: str
    agent_token: str


class UsagePeriod(ApiStruct):
    issued_at: datetime
    start: str
    end: str


class Feature(ApiStruct):
    entitlement: Entitlement
    enabled: bool
    actual: int | UnsetType = UNSET
    actual_ms: int | UnsetType = UNSET
    hard_limit: int | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    soft_limit: int | UnsetType = UNSET
    usage_period: UsagePeriod | UnsetType = UNSET


class RequestOneTimePasscodeRequest(ApiStruct):
    email: str


class ResolveAutostartResponse(ApiStruct):
    parameter_mismatch: bool


class SSHConfigResponse(ApiStruct):
    hostname_prefix: str
    hostname_suffix: str
    ssh_config_options: dict[str, str]


class UpdateAppearanceConfig(ApiStruct):
    application_name: str
    logo_url: str
    service_banner: BannerConfig
    announcement_banners: list[BannerConfig]


class UpdateCheckResponse(ApiStruct):
    current: bool
    version: str
    url: str


class UploadResponse(ApiStruct):
    hash: str


class License(ApiStruct):
    id: int
    uuid: UUID
    uploaded_at: datetime
    claims: dict[str, Json]
    """Claims of the token: features, expiry (`license_expires`, seconds), trial."""
