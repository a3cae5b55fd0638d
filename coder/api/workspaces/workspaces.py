"""JSON shapes of workspaces, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.agents.agents import WorkspaceAppStatus
from coder.api.base.struct import ApiStruct
from coder.api.workspaces.builds import WorkspaceBuild

AutomaticUpdates = Literal["always", "never"]

SharedWorkspaceActorType = Literal["group", "user"]

WorkspaceRole = Literal["admin", "", "use"]


class SharedWorkspaceActor(ApiStruct):
    id: UUID
    actor_type: SharedWorkspaceActorType
    name: str
    roles: list[WorkspaceRole]
    avatar_url: str | UnsetType = UNSET


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


class WorkspacesResponse(ApiStruct):
    workspaces: list[Workspace]
    count: int
