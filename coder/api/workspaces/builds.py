"""JSON shapes of builds, shared by server and client.

Requests carry plain strings where the server must name the invalid field.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.agents.agents import WorkspaceAgent
from coder.api.base.enums import WorkspaceTransition
from coder.api.base.struct import ApiStruct
from coder.api.provisioning.jobs import MatchedProvisioners, ProvisionerJob

BuildReason = Literal[
    "autostart",
    "autostop",
    "cli",
    "dashboard",
    "dormancy",
    "initiator",
    "jetbrains_connection",
    "ssh_connection",
    "task_auto_pause",
    "task_manual_pause",
    "task_resume",
    "vscode_connection",
]

WorkspaceStatus = Literal[
    "canceled", "canceling", "deleted", "deleting", "failed", "pending", "running", "starting", "stopped", "stopping"
]


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


class WorkspaceBuildUpdate(ApiStruct):
    """Update about one build for a watcher of all builds."""

    workspace_id: UUID
    workspace_name: str
    build_id: UUID
    transition: str
    job_status: str
    build_number: int


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
