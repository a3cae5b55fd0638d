"""JSON shapes of keys, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import LoginType
from coder.api.base.struct import ApiStruct


class APIKey(ApiStruct):
    id: str
    user_id: UUID
    last_used: datetime
    expires_at: datetime
    created_at: datetime
    updated_at: datetime
    login_type: LoginType
    scope: str
    scopes: list[str]
    token_name: str
    lifetime_seconds: int
    allow_list: list[str]


class APIKeyWithOwner(ApiStruct):
    allow_list: list[str]
    created_at: datetime
    expires_at: datetime
    id: str
    last_used: datetime
    lifetime_seconds: int
    login_type: LoginType
    scope: str
    scopes: list[str]
    token_name: str
    updated_at: datetime
    user_id: UUID
    username: str


class UserSession(ApiStruct):
    """A signed-in browser or command line."""

    id: str
    created_at: datetime
    last_used: datetime
    expires_at: datetime
    ip_address: str
    user_agent: str
    """User agent of the program that used it last; "" if none was sent."""
    login_type: LoginType
    scopes: list[str]
    current: bool
    """Whether this is the session of the request."""


class CreateTokenRequest(ApiStruct):
    lifetime: int
    token_name: str
    allow_list: list[str] | UnsetType = UNSET
    """Entries `type:id`, the form in which upstream reads and writes its targets."""
    scope: str | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET


class GenerateAPIKeyResponse(ApiStruct):
    key: str


class TokenConfig(ApiStruct):
    max_token_lifetime: int
