"""JSON shapes of groups, shared by server and client."""

from __future__ import annotations

from uuid import UUID

from coder.api.base.enums import GroupSource
from coder.api.base.struct import ApiStruct
from coder.api.people.user_names import ReducedUser


class CreateGroupRequest(ApiStruct):
    name: str
    display_name: str
    avatar_url: str
    quota_allowance: int


class Group(ApiStruct):
    id: UUID
    name: str
    display_name: str
    organization_id: UUID
    members: list[ReducedUser]
    total_member_count: int
    avatar_url: str
    quota_allowance: int
    source: GroupSource
    organization_name: str
    organization_display_name: str


class GroupMembersResponse(ApiStruct):
    users: list[ReducedUser]
    count: int


class PatchGroupRequest(ApiStruct):
    add_users: list[str]
    remove_users: list[str]
    name: str
    display_name: str | None
    avatar_url: str | None
    quota_allowance: int | None
