"""JSON shapes of workspaces: what server and client both speak."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.agents.agents import WorkspaceAppStatus
from coder.api.base.enums import (
    AutomaticUpdates,
    GroupSource,
    ShareableWorkspaceOwners,
    SharedWorkspaceActorType,
    WorkspaceRole,
)
from coder.api.base.struct import ApiStruct
from coder.api.people.users import ReducedUser
from coder.api.templates.parameters import WorkspaceBuildParameter
from coder.api.workspaces.builds import WorkspaceBuild


class CreateWorkspaceRequest(ApiStruct):
    name: str
    automatic_updates: str | UnsetType = UNSET
    autostart_schedule: str | UnsetType = UNSET
    rich_parameter_values: list[WorkspaceBuildParameter] | UnsetType = UNSET
    template_id: UUID | UnsetType = UNSET
    template_version_id: UUID | UnsetType = UNSET
    template_version_preset_id: UUID | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET


class PostWorkspaceUsageRequest(ApiStruct):
    agent_id: UUID
    app_name: str


class PrebuildsSettings(ApiStruct):
    reconciliation_paused: bool


class PutExtendWorkspaceRequest(ApiStruct):
    deadline: datetime


class SharedWorkspaceActor(ApiStruct):
    id: UUID
    actor_type: SharedWorkspaceActorType
    name: str
    roles: list[WorkspaceRole]
    avatar_url: str | UnsetType = UNSET


class UpdateWorkspaceACL(ApiStruct):
    group_roles: dict[str, str] | UnsetType = UNSET
    user_roles: dict[str, str] | UnsetType = UNSET


class UpdateWorkspaceAutomaticUpdatesRequest(ApiStruct):
    automatic_updates: str


class UpdateWorkspaceAutostartRequest(ApiStruct):
    schedule: str | UnsetType = UNSET


class UpdateWorkspaceDormancy(ApiStruct):
    dormant: bool


class UpdateWorkspaceRequest(ApiStruct):
    name: str | UnsetType = UNSET


class UpdateWorkspaceSharingSettingsRequest(ApiStruct):
    shareable_workspace_owners: ShareableWorkspaceOwners | UnsetType = UNSET
    sharing_disabled: bool | UnsetType = UNSET


class UpdateWorkspaceTTLRequest(ApiStruct):
    ttl_ms: int | None


class WorkspaceHealth(ApiStruct):
    healthy: bool
    failing_agents: list[str]


class Workspace(ApiStruct):
    id: UUID
    created_at: datetime
    updated_at: datetime
    owner_id: UUID
    owner_name: str
    owner_avatar_url: str
    organization_id: UUID
    organization_name: str
    template_id: UUID
    template_name: str
    template_display_name: str
    template_icon: str
    template_allow_user_cancel_workspace_jobs: bool
    template_active_version_id: UUID
    template_require_active_version: bool
    template_use_classic_parameter_flow: bool
    latest_build: WorkspaceBuild
    latest_app_status: WorkspaceAppStatus | None
    outdated: bool
    name: str
    last_used_at: datetime
    deleting_at: datetime | None
    dormant_at: datetime | None
    health: WorkspaceHealth
    automatic_updates: AutomaticUpdates
    allow_renames: bool
    favorite: bool
    next_start_at: datetime | None
    is_prebuild: bool
    autostart_schedule: str | UnsetType = UNSET
    shared_with: list[SharedWorkspaceActor] | UnsetType = UNSET
    task_id: UUID | None = None
    ttl_ms: int | UnsetType = UNSET


class WorkspaceGroup(ApiStruct):
    avatar_url: str
    display_name: str
    id: UUID
    members: list[ReducedUser]
    name: str
    organization_display_name: str
    organization_id: UUID
    organization_name: str
    quota_allowance: int
    role: WorkspaceRole
    source: GroupSource
    total_member_count: int


class WorkspaceUser(ApiStruct):
    id: UUID
    role: WorkspaceRole
    username: str
    avatar_url: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class WorkspaceACL(ApiStruct):
    users: list[WorkspaceUser]
    group: list[WorkspaceGroup]


class WorkspaceConnectionLatencyMS(ApiStruct):
    P50: float
    P95: float


class WorkspaceQuota(ApiStruct):
    credits_consumed: int
    budget: int


class WorkspaceSharingSettings(ApiStruct):
    sharing_globally_disabled: bool
    sharing_disabled: bool
    shareable_workspace_owners: ShareableWorkspaceOwners


class WorkspacesResponse(ApiStruct):
    workspaces: list[Workspace]
    count: int
