"""JSON shapes of users' skills, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coder.api.base.struct import ApiStruct


class CreateUserSkillRequest(ApiStruct):
    content: str


class UpdateUserSkillRequest(ApiStruct):
    content: str


class UserSkill(ApiStruct):
    content: str
    created_at: datetime
    description: str
    id: UUID
    name: str
    updated_at: datetime


class UserSkillMetadata(ApiStruct):
    id: UUID
    name: str
    description: str
    created_at: datetime
    updated_at: datetime
