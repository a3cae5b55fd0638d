"""JSON shapes of agents: what server and client both speak."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import (
    AgentSubsystem,
    DisplayApp,
    LogLevel,
    ServerSentEventType,
    TimingStage,
    WorkspaceAgentDevcontainerStatus,
    WorkspaceAgentLifecycle,
    WorkspaceAgentPortShareLevel,
    WorkspaceAgentPortShareProtocol,
    WorkspaceAgentScriptStatus,
    WorkspaceAgentStartupScriptBehavior,
    WorkspaceAgentStatus,
    WorkspaceAppHealth,
    WorkspaceAppOpenIn,
    WorkspaceAppSharingLevel,
    WorkspaceAppStatusState,
)
from coder.api.base.struct import ApiStruct


class AgentScriptTiming(ApiStruct):
    started_at: datetime
    ended_at: datetime
    exit_code: int
    stage: TimingStage
    status: str
    display_name: str
    workspace_agent_id: UUID
    workspace_agent_name: str


class AgentConnectionTiming(ApiStruct):
    started_at: datetime
    ended_at: datetime
    stage: TimingStage
    workspace_agent_id: UUID
    workspace_agent_name: str


class DeleteWorkspaceAgentPortShareRequest(ApiStruct):
    agent_name: str
    port: int


class Healthcheck(ApiStruct):
    url: str
    interval: int
    threshold: int


class IssueReconnectingPTYSignedTokenRequest(ApiStruct):
    url: str
    agentID: str


class IssueReconnectingPTYSignedTokenResponse(ApiStruct):
    signed_token: str


class ServerSentEvent(ApiStruct):
    type: ServerSentEventType
    data: Any


class UpsertWorkspaceAgentPortShareRequest(ApiStruct):
    agent_name: str
    port: int
    share_level: str
    protocol: str


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
    environment_variables: Any
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
    latency: Any | UnsetType = UNSET
    metadata: list[WorkspaceAgentMetadata] | UnsetType = UNSET
    ready_at: datetime | UnsetType = UNSET
    started_at: datetime | UnsetType = UNSET


class WorkspaceAgentContainerPort(ApiStruct):
    port: int
    network: str
    host_ip: str | UnsetType = UNSET
    host_port: int | UnsetType = UNSET


class WorkspaceAgentContainer(ApiStruct):
    created_at: str
    id: str
    name: str
    image: str
    labels: Any
    running: bool
    ports: list[WorkspaceAgentContainerPort]
    status: str
    volumes: Any


class WorkspaceAgentDevcontainerAgent(ApiStruct):
    id: UUID
    name: str
    directory: str


class WorkspaceAgentDevcontainer(ApiStruct):
    id: UUID
    name: str
    workspace_folder: str
    status: WorkspaceAgentDevcontainerStatus
    dirty: bool
    agent: WorkspaceAgentDevcontainerAgent | UnsetType = UNSET
    config_path: str | UnsetType = UNSET
    container: WorkspaceAgentContainer | UnsetType = UNSET
    error: str | UnsetType = UNSET
    subagent_id: UUID | UnsetType = UNSET


WorkspaceAgentGitClientMessageType = Literal["refresh"]


class WorkspaceAgentListContainersResponse(ApiStruct):
    devcontainers: list[WorkspaceAgentDevcontainer]
    containers: list[WorkspaceAgentContainer]
    warnings: list[str] | UnsetType = UNSET


class WorkspaceAgentListeningPort(ApiStruct):
    process_name: str
    network: str
    port: int


class WorkspaceAgentListeningPortsResponse(ApiStruct):
    ports: list[WorkspaceAgentListeningPort]


class WorkspaceAgentLog(ApiStruct):
    id: int
    created_at: datetime
    output: str
    level: LogLevel
    source_id: UUID


class WorkspaceAgentPortShare(ApiStruct):
    workspace_id: UUID
    agent_name: str
    port: int
    share_level: WorkspaceAgentPortShareLevel
    protocol: WorkspaceAgentPortShareProtocol


class WorkspaceAgentPortShares(ApiStruct):
    shares: list[WorkspaceAgentPortShare]
