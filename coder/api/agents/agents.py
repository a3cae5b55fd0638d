"""JSON shapes of agents, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json

AgentSubsystem = Literal["envbox", "envbuilder", "exectrace"]

DisplayApp = Literal["port_forwarding_helper", "ssh_helper", "vscode", "vscode_insiders", "web_terminal"]

WorkspaceAgentLifecycle = Literal[
    "created",
    "off",
    "ready",
    "shutdown_error",
    "shutdown_timeout",
    "shutting_down",
    "start_error",
    "start_timeout",
    "starting",
]

WorkspaceAgentScriptStatus = Literal["exit_failure", "ok", "pipes_left_open", "timed_out"]

WorkspaceAgentStartupScriptBehavior = Literal["blocking", "non-blocking"]

WorkspaceAgentStatus = Literal["connected", "connecting", "disconnected", "timeout"]

WorkspaceAppHealth = Literal["disabled", "healthy", "initializing", "unhealthy"]

WorkspaceAppOpenIn = Literal["slim-window", "tab"]

WorkspaceAppSharingLevel = Literal["authenticated", "organization", "owner", "public"]

WorkspaceAppStatusState = Literal["complete", "failure", "idle", "working"]


class Healthcheck(ApiStruct):
    url: str
    interval: int
    threshold: int


class WorkspaceAgentHealth(ApiStruct):
    healthy: bool
    reason: str | UnsetType = UNSET


class WorkspaceAgentLogSource(ApiStruct):
    workspace_agent_id: UUID
    id: UUID
    created_at: datetime
    display_name: str
    icon: str


class WorkspaceAgentMetadataDescription(ApiStruct):
    display_name: str
    key: str
    script: str
    interval: int
    timeout: int


class WorkspaceAgentMetadataResult(ApiStruct):
    collected_at: datetime
    age: int
    value: str
    error: str


class WorkspaceAgentMetadata(ApiStruct):
    result: WorkspaceAgentMetadataResult
    description: WorkspaceAgentMetadataDescription


class WorkspaceAgentScript(ApiStruct):
    id: UUID
    log_source_id: UUID
    log_path: str
    script: str
    cron: str
    run_on_start: bool
    run_on_stop: bool
    start_blocks_login: bool
    timeout: int
    display_name: str
    exit_code: int | UnsetType = UNSET
    status: WorkspaceAgentScriptStatus | UnsetType = UNSET


class WorkspaceAppStatus(ApiStruct):
    id: UUID
    created_at: datetime
    workspace_id: UUID
    agent_id: UUID
    app_id: UUID
    state: WorkspaceAppStatusState
    message: str
    uri: str
    icon: str
    needs_user_attention: bool


class WorkspaceApp(ApiStruct):
    id: UUID
    external: bool
    slug: str
    subdomain: bool
    sharing_level: WorkspaceAppSharingLevel
    health: WorkspaceAppHealth
    hidden: bool
    open_in: WorkspaceAppOpenIn
    statuses: list[WorkspaceAppStatus]
    command: str | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    healthcheck: Healthcheck | UnsetType = UNSET
    icon: str | UnsetType = UNSET
    subdomain_name: str | UnsetType = UNSET
    tooltip: str | UnsetType = UNSET
    url: str | UnsetType = UNSET


class WorkspaceAgent(ApiStruct):
    id: UUID
    parent_id: UUID | None
    created_at: datetime
    updated_at: datetime
    status: WorkspaceAgentStatus
    lifecycle_state: WorkspaceAgentLifecycle
    name: str
    resource_id: UUID
    architecture: str
    environment_variables: dict[str, str] | None
    operating_system: str
    logs_length: int
    logs_overflowed: bool
    version: str
    api_version: str
    apps: list[WorkspaceApp]
    connection_timeout_seconds: int
    troubleshooting_url: str
    subsystems: list[AgentSubsystem]
    health: WorkspaceAgentHealth
    display_apps: list[DisplayApp]
    log_sources: list[WorkspaceAgentLogSource]
    scripts: list[WorkspaceAgentScript]
    startup_script_behavior: WorkspaceAgentStartupScriptBehavior
    directory: str | UnsetType = UNSET
    disconnected_at: datetime | UnsetType = UNSET
    expanded_directory: str | UnsetType = UNSET
    first_connected_at: datetime | UnsetType = UNSET
    instance_id: str | UnsetType = UNSET
    last_connected_at: datetime | UnsetType = UNSET
    latency: Json | UnsetType = UNSET
    metadata: list[WorkspaceAgentMetadata] | UnsetType = UNSET
    ready_at: datetime | UnsetType = UNSET
    started_at: datetime | UnsetType = UNSET
