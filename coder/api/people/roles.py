"""JSON shapes of roles, permissions and permission checks, shared by server and client."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct

RBACAction = Literal[
    "application_connect",
    "assign",
    "create",
    "create_agent",
    "delete",
    "delete_agent",
    "read",
    "read_personal",
    "ssh",
    "share",
    "unassign",
    "update",
    "update_agent",
    "update_personal",
    "use",
    "view_insights",
    "start",
    "stop",
]

RBACResource = Literal[
    "ai_gateway_key",
    "ai_provider",
    "ai_model_price",
    "ai_seat",
    "aibridge_interception",
    "api_key",
    "assign_org_role",
    "assign_role",
    "audit_log",
    "boundary_log",
    "boundary_usage",
    "chat",
    "connection_log",
    "crypto_key",
    "debug_info",
    "deployment_config",
    "deployment_stats",
    "file",
    "group",
    "group_member",
    "idpsync_settings",
    "inbox_notification",
    "license",
    "mcp_server_config",
    "notification_message",
    "notification_preference",
    "notification_template",
    "oauth2_app",
    "oauth2_app_code_token",
    "oauth2_app_secret",
    "organization",
    "organization_member",
    "prebuilt_workspace",
    "provisioner_daemon",
    "provisioner_jobs",
    "replicas",
    "system",
    "tailnet_coordinator",
    "task",
    "template",
    "usage_event",
    "user",
    "user_secret",
    "user_skill",
    "webpush_subscription",
    "*",
    "workspace",
    "workspace_agent_devcontainers",
    "workspace_agent_resource_monitor",
    "workspace_build_orchestration",
    "workspace_dormant",
    "workspace_proxy",
]


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


class AuthorizationObject(ApiStruct):
    resource_type: RBACResource
    any_org: bool | UnsetType = UNSET
    organization_id: UUID | UnsetType = UNSET
    owner_id: UUID | UnsetType = UNSET
    resource_id: UUID | UnsetType = UNSET


class AuthorizationCheck(ApiStruct):
    object: AuthorizationObject
    action: RBACAction


class SentObject(ApiStruct):
    """`AuthorizationObject` as any client may send it: unknown types are answered, too."""

    resource_type: str
    owner_id: str
    organization_id: str
    resource_id: str
    any_org: bool


class SentCheck(ApiStruct):
    """`AuthorizationCheck` as any client may send it."""

    object: SentObject
    action: str


class AuthorizationRequest(ApiStruct):
    checks: dict[str, SentCheck]


AuthorizationResponse = dict[str, bool]


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


class UserRoles(ApiStruct):
    roles: list[str]
    organization_roles: dict[str, list[str]]
