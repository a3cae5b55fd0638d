"""JSON shapes of users in references from other nouns, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import LoginType, UserStatus
from coder.api.base.struct import ApiStruct


class MinimalUser(ApiStruct):
    id: UUID
    username: str
    avatar_url: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class ReducedUser(ApiStruct):
    created_at: datetime
    email: str
    id: UUID
    login_type: LoginType
    status: UserStatus
    updated_at: datetime
    username: str
    avatar_url: str | UnsetType = UNSET
    is_service_account: bool | UnsetType = UNSET
    last_seen_at: datetime | UnsetType = UNSET
    name: str | UnsetType = UNSET
    theme_preference: str | UnsetType = UNSET
