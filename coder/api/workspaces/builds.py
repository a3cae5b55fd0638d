"""JSON shapes of builds: what server and client both speak.

Requests carry plain strings where the server wants to name the field that was wrong.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.agents.agents import AgentConnectionTiming, AgentScriptTiming, WorkspaceAgent
from coder.api.base.enums import (
    BuildReason,
    WorkspaceStatus,
    WorkspaceTransition,
)
from coder.api.base.struct import ApiStruct
from coder.api.provisioning.provisioners import MatchedProvisioners, ProvisionerJob, ProvisionerTiming
from coder.api.templates.parameters import WorkspaceBuildParameter


class BuildInfoResponse(ApiStruct):
    external_url: str
    version: str
    dashboard_url: str
    telemetry: bool
    workspace_proxy: bool
    agent_api_version: str
    provisioner_api_version: str
    upgrade_message: str
    deployment_id: UUID
    webpush_public_key: str | UnsetType = UNSET


class CreateWorkspaceBuildOnSuccessRequest(ApiStruct):
    transition: WorkspaceTransition
    rich_parameter_values: list[WorkspaceBuildParameter] | UnsetType = UNSET
    template_version_id: UUID | UnsetType = UNSET
    template_version_preset_id: UUID | UnsetType = UNSET


class CreateWorkspaceBuildRequest(ApiStruct):
    transition: str
    dry_run: bool | UnsetType = UNSET
    log_level: str | UnsetType = UNSET
    on_success: CreateWorkspaceBuildOnSuccessRequest | UnsetType = UNSET
    orphan: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    rich_parameter_values: list[WorkspaceBuildParameter] | UnsetType = UNSET
    state: str | UnsetType = UNSET
    template_version_id: UUID | UnsetType = UNSET
    template_version_preset_id: UUID | UnsetType = UNSET


class UpdateWorkspaceBuildStateRequest(ApiStruct):
    state: str


class WorkspaceResourceMetadata(ApiStruct):
    key: str
    value: str
    sensitive: bool


class WorkspaceResource(ApiStruct):
    id: UUID
    created_at: datetime
    job_id: UUID
    workspace_transition: WorkspaceTransition
    type: str
    name: str
    hide: bool
    icon: str
    daily_cost: int
    agents: list[WorkspaceAgent] | UnsetType = UNSET
    metadata: list[WorkspaceResourceMetadata] | UnsetType = UNSET


class WorkspaceBuild(ApiStruct):
    id: UUID
    created_at: datetime
    updated_at: datetime
    workspace_id: UUID
    workspace_name: str
    workspace_owner_id: UUID
    workspace_owner_name: str
    template_version_id: UUID
    template_version_name: str
    build_number: int
    transition: WorkspaceTransition
    initiator_id: UUID
    initiator_name: str
    job: ProvisionerJob
    reason: BuildReason
    resources: list[WorkspaceResource]
    status: WorkspaceStatus
    daily_cost: int
    template_version_preset_id: UUID | None
    deadline: datetime | UnsetType | None = UNSET
    has_ai_task: bool | UnsetType = UNSET
    has_external_agent: bool | UnsetType = UNSET
    matched_provisioners: MatchedProvisioners | UnsetType = UNSET
    max_deadline: datetime | UnsetType | None = UNSET
    workspace_owner_avatar_url: str | UnsetType = UNSET


class WorkspaceBuildTimings(ApiStruct):
    provisioner_timings: list[ProvisionerTiming]
    agent_script_timings: list[AgentScriptTiming]
    agent_connection_timings: list[AgentConnectionTiming]
