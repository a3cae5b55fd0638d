"""JSON shapes of users, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import LoginType, UserStatus
from coder.api.base.struct import ApiStruct


class SlimRole(ApiStruct):
    name: str
    display_name: str
    organization_id: UUID | UnsetType = UNSET


class User(ApiStruct):
    created_at: datetime
    email: str
    has_ai_seat: bool
    id: UUID
    login_type: LoginType
    organization_ids: list[UUID]
    roles: list[SlimRole]
    status: UserStatus
    updated_at: datetime
    username: str
    avatar_url: str | UnsetType = UNSET
    is_service_account: bool | UnsetType = UNSET
    last_seen_at: datetime | UnsetType = UNSET
    name: str | UnsetType = UNSET
    theme_preference: str | UnsetType = UNSET


class GetUsersResponse(ApiStruct):
    users: list[User]
    count: int
