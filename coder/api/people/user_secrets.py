"""JSON shapes of users' secrets, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct


class CreateUserSecretRequest(ApiStruct):
    name: str
    value: str
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    env_name: str | UnsetType = UNSET
    file_path: str | UnsetType = UNSET


class ImportUserSecretsRequest(ApiStruct):
    """A file of secrets."""

    format: str
    content: str


class UpdateUserSecretRequest(ApiStruct):
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    env_name: str | UnsetType = UNSET
    file_path: str | UnsetType = UNSET
    value: str | UnsetType = UNSET


class UserSecret(ApiStruct):
    id: UUID
    name: str
    description: str
    env_name: str
    file_path: str
    enabled: bool
    created_at: datetime
    updated_at: datetime
