"""JSON shapes of workspace settings, shared by server and client."""

from __future__ import annotations

from typing import Literal, get_args
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import GroupSource
from coder.api.base.struct import ApiStruct
from coder.api.people.user_names import ReducedUser
from coder.api.workspaces.workspaces import WorkspaceRole

ShareableWorkspaceOwners = Literal["everyone", "none", "service_accounts"]
SHARING_OWNERS: tuple[str, ...] = get_args(ShareableWorkspaceOwners)


class PostWorkspaceUsageRequest(ApiStruct):
    agent_id: UUID
    app_name: str


class ExtendWorkspaceRequest(ApiStruct):
    """`PutExtendWorkspaceRequest` with the time as text, so that the refusal can name it."""

    deadline: str | None = None


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
    shareable_workspace_owners: str | UnsetType = UNSET
    """An item of `ShareableWorkspaceOwners`; absent keeps the current value."""
    sharing_disabled: bool | UnsetType = UNSET


class UpdateWorkspaceTTLRequest(ApiStruct):
    ttl_ms: int | None


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


class WorkspaceSharingSettings(ApiStruct):
    sharing_globally_disabled: bool
    sharing_disabled: bool
    shareable_workspace_owners: ShareableWorkspaceOwners
