"""JSON shapes for creating and changing users, shared by server and client."""

from __future__ import annotations

from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json


class CreateFirstUserOnboardingInfo(ApiStruct):
    newsletter_marketing: bool
    newsletter_releases: bool


class CreateFirstUserTrialInfo(ApiStruct):
    first_name: str
    last_name: str
    phone_number: str
    job_title: str
    company_name: str
    country: str
    developers: str


class CreateFirstUserRequest(ApiStruct):
    email: str
    username: str
    name: str
    password: str
    trial: bool
    trial_info: CreateFirstUserTrialInfo
    onboarding_info: CreateFirstUserOnboardingInfo | UnsetType = UNSET


class CreateFirstUserResponse(ApiStruct):
    user_id: UUID
    organization_id: UUID


class CreateUserRequestWithOrgs(ApiStruct):
    email: str
    username: str
    name: str
    password: str
    login_type: str
    user_status: str | None
    organization_ids: list[UUID]
    roles: list[str] | UnsetType = UNSET
    service_account: bool | UnsetType = UNSET


class GetUserStatusCountsResponse(ApiStruct):
    status_counts: Json


class UpdateUserProfileRequest(ApiStruct):
    username: str
    name: str
    avatar_url: str
