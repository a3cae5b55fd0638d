"""JSON shapes of deployment: what server and client both speak."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import Entitlement, Experiment, PremiumFunnelSource, PremiumFunnelVariant
from coder.api.base.struct import ApiStruct
from coder.api.people.groups import Group
from coder.api.people.users import ReducedUser
from coder.api.workspaces.workspaces import WorkspaceConnectionLatencyMS


class ACLAvailable(ApiStruct):
    users: list[ReducedUser]
    groups: list[Group]


class AddLicenseRequest(ApiStruct):
    license: str


Addon = Literal["ai_governance"]


class AdvisorConfig(ApiStruct):
    enabled: bool
    max_uses_per_run: int
    max_output_tokens: int
    model_config_id: UUID
    reasoning_effort: str | UnsetType = UNSET


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


class ClusterConfig(ApiStruct):
    host: str


class ConnectionLatency(ApiStruct):
    p50: float
    p95: float


class CreateTrialLicenseRequest(ApiStruct):
    email: str
    first_name: str
    last_name: str
    phone_number: str
    job_title: str
    company_name: str
    country: str
    developers: str
    attribution_id: UUID | UnsetType = UNSET
    source: PremiumFunnelSource | UnsetType = UNSET


class DangerousConfig(ApiStruct):
    allow_path_app_sharing: bool
    allow_path_app_site_owner_access: bool
    allow_all_cors: bool


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


class DynamicTool(ApiStruct):
    name: str
    input_schema: Any
    description: str | UnsetType = UNSET


class DynamicToolCall(ApiStruct):
    tool_call_id: UUID
    tool_name: str
    args: str


class DynamicToolResponse(ApiStruct):
    content: str
    is_error: bool


class Entitlements(ApiStruct):
    features: Any
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


class HTTPCookieConfig(ApiStruct):
    host_prefix: bool | UnsetType = UNSET
    same_site: str | UnsetType = UNSET
    secure_auth_cookie: bool | UnsetType = UNSET


class HealthcheckConfig(ApiStruct):
    refresh: int
    threshold_database: int


class LoggingConfig(ApiStruct):
    log_filter: str
    human: str
    json: str
    stackdriver: str


class Pagination(ApiStruct):
    after_id: str | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET


class PprofConfig(ApiStruct):
    enable: bool
    address: str


class PremiumFunnelEventRequest(ApiStruct):
    id: UUID
    source: PremiumFunnelSource
    variant: PremiumFunnelVariant


class PrometheusConfig(ApiStruct):
    enable: bool
    address: str
    collect_agent_stats: bool
    collect_db_metrics: bool
    aggregate_agent_stats_by: str


class RateLimitConfig(ApiStruct):
    disable_all: bool
    api: int


class RequestOneTimePasscodeRequest(ApiStruct):
    email: str


class ResolveAutostartResponse(ApiStruct):
    parameter_mismatch: bool


class RetentionConfig(ApiStruct):
    audit_logs: int
    connection_logs: int
    api_keys: int
    workspace_agent_logs: int
    boundary_logs: int


class SSHConfig(ApiStruct):
    DeploymentName: str
    SSHConfigOptions: str


class SSHConfigResponse(ApiStruct):
    hostname_prefix: str
    hostname_suffix: str
    ssh_config_options: Any


class ServiceBannerConfig(ApiStruct):
    enabled: bool
    background_color: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class SessionLifetime(ApiStruct):
    default_duration: int
    default_token_lifetime: int | UnsetType = UNSET
    disable_expiry_refresh: bool | UnsetType = UNSET
    max_admin_token_lifetime: int | UnsetType = UNSET
    max_token_lifetime: int | UnsetType = UNSET
    refresh_default_duration: int | UnsetType = UNSET


class UsageStatsConfig(ApiStruct):
    enable: bool


class StatsCollectionConfig(ApiStruct):
    usage_stats: UsageStatsConfig


class ToolResult(ApiStruct):
    tool_call_id: UUID
    output: Any
    is_error: bool


class SubmitToolResultsRequest(ApiStruct):
    results: list[ToolResult]


class SupportConfig(ApiStruct):
    links: Any


class SwaggerConfig(ApiStruct):
    enable: bool


class TLSConfig(ApiStruct):
    enable: bool
    address: str
    redirect_http: bool
    cert_file: str
    client_auth: str
    client_ca_file: str
    key_file: str
    min_version: str
    client_cert_file: str
    client_key_file: str
    supported_ciphers: str
    allow_insecure_ciphers: bool


class TraceConfig(ApiStruct):
    enable: bool
    honeycomb_api_key: str
    capture_logs: bool
    data_dog: bool


class TransitionStats(ApiStruct):
    P50: float | None
    P95: float | None


class UpdateAdvisorConfigRequest(ApiStruct):
    enabled: bool
    max_uses_per_run: int
    max_output_tokens: int
    model_config_id: UUID
    reasoning_effort: str | UnsetType = UNSET


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
