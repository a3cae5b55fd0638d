"""JSON shapes of users: what server and client both speak."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import (
    LoginType,
    RBACAction,
    RBACResource,
    UserStatus,
)
from coder.api.base.struct import ApiStruct
from coder.api.login.oauth2 import GithubAuthMethod, OIDCAuthMethod


class Permission(ApiStruct):
    negate: bool
    resource_type: RBACResource
    action: RBACAction


class AssignableRoles(ApiStruct):
    assignable: bool
    built_in: bool
    display_name: str
    name: str
    organization_member_permissions: list[Permission]
    organization_permissions: list[Permission]
    site_permissions: list[Permission]
    user_permissions: list[Permission]
    organization_id: UUID | UnsetType = UNSET


class AuthMethod(ApiStruct):
    enabled: bool


class AuthMethods(ApiStruct):
    password: AuthMethod
    github: GithubAuthMethod
    oidc: OIDCAuthMethod
    terms_of_service_url: str | UnsetType = UNSET


class AuthorizationObject(ApiStruct):
    resource_type: RBACResource
    any_org: bool | UnsetType = UNSET
    organization_id: UUID | UnsetType = UNSET
    owner_id: UUID | UnsetType = UNSET
    resource_id: UUID | UnsetType = UNSET


class AuthorizationCheck(ApiStruct):
    object: AuthorizationObject
    action: RBACAction


class AuthorizationRequest(ApiStruct):
    checks: dict[str, Any]


AuthorizationResponse = Any


class ChangePasswordWithOneTimePasscodeRequest(ApiStruct):
    email: str
    password: str
    one_time_passcode: str


class ConvertLoginRequest(ApiStruct):
    to_type: str
    password: str


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


class CreateUserSecretRequest(ApiStruct):
    name: str
    value: str
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    env_name: str | UnsetType = UNSET
    file_path: str | UnsetType = UNSET


class CreateUserSkillRequest(ApiStruct):
    content: str


class GetUserStatusCountsResponse(ApiStruct):
    status_counts: Any


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


class LoginWithPasswordRequest(ApiStruct):
    email: str
    password: str


class LoginWithPasswordResponse(ApiStruct):
    session_token: str


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


class Role(ApiStruct):
    name: str
    display_name: str
    site_permissions: list[Permission]
    user_permissions: list[Permission]
    organization_permissions: list[Permission]
    organization_member_permissions: list[Permission]
    organization_id: UUID | UnsetType = UNSET


class UpdateRoles(ApiStruct):
    roles: list[str]


class UpdateUserAppearanceSettingsRequest(ApiStruct):
    theme_preference: str
    theme_mode: str
    theme_light: str
    theme_dark: str
    terminal_font: str


class UpdateUserPasswordRequest(ApiStruct):
    old_password: str
    password: str


class UpdateUserPreferenceSettingsRequest(ApiStruct):
    agent_chat_send_shortcut: Any | UnsetType = UNSET
    code_diff_display_mode: Any | UnsetType = UNSET
    shell_tool_display_mode: Any | UnsetType = UNSET
    task_notification_alert_dismissed: bool | UnsetType = UNSET
    thinking_display_mode: str | UnsetType = UNSET


class UpdateUserProfileRequest(ApiStruct):
    username: str
    name: str
    avatar_url: str


class UpdateUserQuietHoursScheduleRequest(ApiStruct):
    schedule: str


class UpdateUserSecretRequest(ApiStruct):
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    env_name: str | UnsetType = UNSET
    file_path: str | UnsetType = UNSET
    value: str | UnsetType = UNSET


class UpdateUserSkillRequest(ApiStruct):
    content: str


class UserAppearanceSettings(ApiStruct):
    theme_preference: str
    theme_mode: str
    theme_light: str
    theme_dark: str
    terminal_font: str


class UserLoginType(ApiStruct):
    login_type: LoginType


class UserPreferenceSettings(ApiStruct):
    task_notification_alert_dismissed: bool
    thinking_display_mode: str
    shell_tool_display_mode: Any
    code_diff_display_mode: Any
    agent_chat_send_shortcut: Any


class UserQuietHoursScheduleResponse(ApiStruct):
    raw_schedule: str
    user_set: bool
    user_can_set: bool
    time: str
    "Wall clock there, `15:04`."
    timezone: str
    next: datetime


class UserRoles(ApiStruct):
    roles: list[str]
    organization_roles: Any


class UserSecret(ApiStruct):
    id: UUID
    name: str
    description: str
    env_name: str
    file_path: str
    enabled: bool
    created_at: datetime
    updated_at: datetime


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


class ValidateUserPasswordRequest(ApiStruct):
    password: str


class ValidateUserPasswordResponse(ApiStruct):
    valid: bool
    details: str
