"""JSON shapes of organizations, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import LoginType, UserStatus
from coder.api.base.struct import ApiStruct
from coder.api.people.users import SlimRole


class CreateOrganizationRequest(ApiStruct):
    name: str
    description: str | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    icon: str | UnsetType = UNSET


class MinimalOrganization(ApiStruct):
    id: UUID
    name: str
    display_name: str
    icon: str


class Organization(ApiStruct):
    created_at: datetime
    default_org_member_roles: list[str]
    description: str
    display_name: str
    icon: str
    id: UUID
    is_default: bool
    name: str
    updated_at: datetime


class OrganizationMember(ApiStruct):
    user_id: UUID
    organization_id: UUID
    created_at: datetime
    updated_at: datetime
    roles: list[SlimRole]


class OrganizationMemberWithUserData(ApiStruct):
    created_at: datetime
    email: str
    global_roles: list[SlimRole]
    has_ai_seat: bool
    login_type: LoginType
    organization_id: UUID
    roles: list[SlimRole]
    status: UserStatus
    updated_at: datetime
    user_created_at: datetime
    user_id: UUID
    user_updated_at: datetime
    username: str
    avatar_url: str | UnsetType = UNSET
    is_service_account: bool | UnsetType = UNSET
    last_seen_at: datetime | UnsetType = UNSET
    name: str | UnsetType = UNSET


class PaginatedMembersResponse(ApiStruct):
    members: list[OrganizationMemberWithUserData]
    count: int


class UpdateOrganizationRequest(ApiStruct):
    default_org_member_roles: list[str] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    icon: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
