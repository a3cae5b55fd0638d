"""JSON shapes of groups: what server and client both speak."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import GroupSource
from coder.api.base.struct import ApiStruct
from coder.api.people.users import ReducedUser


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


class GroupArguments(ApiStruct):
    Organization: str
    HasMember: str
    GroupIDs: list[str]


class GroupMemberAISpend(ApiStruct):
    user_id: UUID
    effective_group_id: UUID | None
    group_budget: Any
    group_spend_micros: int


class GroupMembersAISpend(ApiStruct):
    members: list[GroupMemberAISpend]
    period_end: str
    period_start: str


class GroupMembersResponse(ApiStruct):
    users: list[ReducedUser]
    count: int


class GroupRequest(ApiStruct):
    exclude_members: bool


class OrganizationGroupAISpend(ApiStruct):
    group_id: UUID
    spend_limit_micros: int | None
    total_spend_limit_micros: int | None
    current_spend_micros: int


class OrganizationGroupsAISpend(ApiStruct):
    groups: list[OrganizationGroupAISpend]
    period_end: str
    period_start: str


class PaginatedGroup(ApiStruct):
    id: UUID
    name: str
    display_name: str
    organization_id: UUID
    total_member_count: int
    avatar_url: str
    quota_allowance: int
    source: GroupSource
    organization_name: str
    organization_display_name: str


class PaginatedGroupsRequest(ApiStruct):
    after_id: str | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET
    q: str | UnsetType = UNSET


class PaginatedGroupsResponse(ApiStruct):
    groups: list[PaginatedGroup]
    count: int


class PatchGroupRequest(ApiStruct):
    add_users: list[str]
    remove_users: list[str]
    name: str
    display_name: str | None
    avatar_url: str | None
    quota_allowance: int | None
