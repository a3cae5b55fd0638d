"""JSON shapes of templates, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import GroupSource, LoginType, ProvisionerType, UserStatus, WorkspaceAgentPortShareLevel
from coder.api.base.struct import ApiStruct
from coder.api.people.user_names import ReducedUser
from coder.api.people.users import SlimRole
from coder.base.json_types import Json

CORSBehavior = Literal["passthru", "simple"]

TemplateAppsType = Literal["app", "builtin"]

TemplateRole = Literal["admin", "", "use"]


class TemplateAutostartRequirement(ApiStruct):
    days_of_week: list[str]


class TemplateAutostopRequirement(ApiStruct):
    days_of_week: list[str]
    weeks: int


class CreateTemplateRequest(ApiStruct):
    # Choices are plain text in requests: the service refuses a wrong one with a validation, not as a broken body.
    name: str
    template_version_id: UUID
    allow_user_cancel_workspace_jobs: bool | None
    disable_everyone_group_access: bool
    require_active_version: bool
    max_port_share_level: str | None
    cors_behavior: str | None
    activity_bump_ms: int | UnsetType = UNSET
    agents_allowed: bool | UnsetType = UNSET
    allow_user_autostart: bool | UnsetType = UNSET
    allow_user_autostop: bool | UnsetType = UNSET
    autostart_requirement: TemplateAutostartRequirement | UnsetType = UNSET
    autostop_requirement: TemplateAutostopRequirement | UnsetType = UNSET
    default_ttl_ms: int | UnsetType = UNSET
    delete_ttl_ms: int | UnsetType = UNSET
    description: str | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    dormant_ttl_ms: int | UnsetType = UNSET
    failure_ttl_ms: int | UnsetType = UNSET
    icon: str | UnsetType = UNSET
    template_use_classic_parameter_flow: bool | UnsetType = UNSET
    time_til_autostop_notify_ms: int | UnsetType = UNSET


TemplateBuildTimeStats = Json


class Template(ApiStruct):
    id: UUID
    created_at: datetime
    updated_at: datetime
    organization_id: UUID
    organization_name: str
    organization_display_name: str
    organization_icon: str
    name: str
    display_name: str
    provisioner: ProvisionerType
    active_version_id: UUID
    active_user_count: int
    build_time_stats: TemplateBuildTimeStats
    description: str
    deprecated: bool
    deprecation_message: str
    deleted: bool
    icon: str
    default_ttl_ms: int
    activity_bump_ms: int
    time_til_autostop_notify_ms: int
    autostop_requirement: TemplateAutostopRequirement
    autostart_requirement: TemplateAutostartRequirement
    created_by_id: UUID
    created_by_name: str
    allow_user_autostart: bool
    allow_user_autostop: bool
    allow_user_cancel_workspace_jobs: bool
    failure_ttl_ms: int
    time_til_dormant_ms: int
    time_til_dormant_autodelete_ms: int
    require_active_version: bool
    max_port_share_level: WorkspaceAgentPortShareLevel
    cors_behavior: CORSBehavior
    use_classic_parameter_flow: bool
    agents_allowed: bool
    disable_module_cache: bool


class TemplateGroup(ApiStruct):
    avatar_url: str
    display_name: str
    id: UUID
    members: list[ReducedUser]
    name: str
    organization_display_name: str
    organization_id: UUID
    organization_name: str
    quota_allowance: int
    role: TemplateRole
    source: GroupSource
    total_member_count: int


class TemplateUser(ApiStruct):
    created_at: datetime
    email: str
    has_ai_seat: bool
    id: UUID
    login_type: LoginType
    organization_ids: list[UUID]
    role: TemplateRole
    roles: list[SlimRole]
    status: UserStatus
    updated_at: datetime
    username: str
    avatar_url: str | UnsetType = UNSET
    is_service_account: bool | UnsetType = UNSET
    last_seen_at: datetime | UnsetType = UNSET
    name: str | UnsetType = UNSET
    theme_preference: str | UnsetType = UNSET


class TemplateACL(ApiStruct):
    users: list[TemplateUser]
    group: list[TemplateGroup]


class TemplateAppUsage(ApiStruct):
    template_ids: list[UUID]
    type: TemplateAppsType
    display_name: str
    slug: str
    icon: str
    seconds: int
    times_used: int


class TemplateExample(ApiStruct):
    id: str
    url: str
    name: str
    description: str
    icon: str
    tags: list[str]
    markdown: str


class UpdateTemplateMeta(ApiStruct):
    activity_bump_ms: int | UnsetType = UNSET
    agents_allowed: bool | UnsetType = UNSET
    allow_user_autostart: bool | UnsetType = UNSET
    allow_user_autostop: bool | UnsetType = UNSET
    allow_user_cancel_workspace_jobs: bool | UnsetType = UNSET
    autostart_requirement: TemplateAutostartRequirement | UnsetType = UNSET
    autostop_requirement: TemplateAutostopRequirement | UnsetType = UNSET
    cors_behavior: str | UnsetType = UNSET
    default_ttl_ms: int | UnsetType = UNSET
    deprecation_message: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    disable_everyone_group_access: bool | UnsetType = UNSET
    disable_module_cache: bool | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    failure_ttl_ms: int | UnsetType = UNSET
    icon: str | UnsetType = UNSET
    max_port_share_level: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    require_active_version: bool | UnsetType = UNSET
    time_til_autostop_notify_ms: int | UnsetType = UNSET
    time_til_dormant_autodelete_ms: int | UnsetType = UNSET
    time_til_dormant_ms: int | UnsetType = UNSET
    update_workspace_dormant_at: bool | UnsetType = UNSET
    update_workspace_last_used_at: bool | UnsetType = UNSET
    use_classic_parameter_flow: bool | UnsetType = UNSET


class TemplateBuildTokens(ApiStruct):
    """Whether session tokens of a template's builds carry all roles of the workspaces' owners (ours)."""

    all_roles: bool
