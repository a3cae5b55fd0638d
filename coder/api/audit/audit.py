"""JSON shapes of audit, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.people.organizations import MinimalOrganization
from coder.api.people.users import User
from coder.api.workspaces.builds import BuildReason
from coder.base.json_types import Json

AuditAction = Literal[
    "close",
    "connect",
    "create",
    "delete",
    "disconnect",
    "login",
    "logout",
    "open",
    "register",
    "request_password_reset",
    "start",
    "stop",
    "write",
]

ConnectionType = Literal[
    "jetbrains",
    "port_forwarding",
    "reconnecting_pty",
    "ssh",
    "tunnel",
    "vscode",
    "workspace_app",
]

ResourceType = Literal[
    "ai_gateway_key",
    "ai_provider",
    "ai_provider_key",
    "ai_seat",
    "api_key",
    "chat",
    "chat_instruction_settings",
    "convert_login",
    "custom_role",
    "git_ssh_key",
    "group",
    "group_ai_budget",
    "health_settings",
    "idp_sync_settings_group",
    "idp_sync_settings_organization",
    "idp_sync_settings_role",
    "license",
    "mcp_server_config",
    "notification_template",
    "notifications_settings",
    "oauth2_provider_app",
    "oauth2_provider_app_secret",
    "oauth2_provider_settings",
    "organization",
    "organization_member",
    "prebuilds_settings",
    "task",
    "template",
    "template_version",
    "user",
    "user_ai_budget_override",
    "user_secret",
    "user_skill",
    "workspace",
    "workspace_agent",
    "workspace_app",
    "workspace_build",
    "workspace_proxy",
]

AuditDiff = Json


class AuditDiffField(ApiStruct):
    secret: bool
    new: Json | UnsetType = UNSET
    old: Json | UnsetType = UNSET


class AuditLog(ApiStruct):
    id: UUID
    request_id: UUID
    time: datetime
    ip: str
    user_agent: str
    resource_type: ResourceType
    resource_id: UUID
    resource_target: str
    resource_icon: str
    action: AuditAction
    diff: AuditDiff
    status_code: int
    additional_fields: Json
    description: str
    resource_link: str
    is_deleted: bool
    organization_id: UUID
    user: User | None
    organization: MinimalOrganization | UnsetType = UNSET


class AuditLogResponse(ApiStruct):
    audit_logs: list[AuditLog]
    count: int
    count_cap: int


class ConnectionLogSSHInfo(ApiStruct):
    connection_id: UUID
    disconnect_reason: str | UnsetType = UNSET
    disconnect_time: datetime | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET


class ConnectionLogWebInfo(ApiStruct):
    user_agent: str
    user: User | None
    slug_or_port: str
    status_code: int


class ConnectionLog(ApiStruct):
    id: UUID
    connect_time: datetime
    organization: MinimalOrganization
    workspace_owner_id: UUID
    workspace_owner_username: str
    workspace_id: UUID
    workspace_name: str
    agent_name: str
    type: ConnectionType
    ip: str | UnsetType = UNSET
    ssh_info: ConnectionLogSSHInfo | UnsetType = UNSET
    web_info: ConnectionLogWebInfo | UnsetType = UNSET


class ConnectionLogResponse(ApiStruct):
    connection_logs: list[ConnectionLog]
    count: int
    count_cap: int


class CreateTestAuditLogRequest(ApiStruct):
    action: AuditAction | UnsetType = UNSET
    additional_fields: Json | UnsetType = UNSET
    build_reason: BuildReason | UnsetType = UNSET
    organization_id: UUID | UnsetType = UNSET
    request_id: UUID | UnsetType = UNSET
    resource_id: UUID | UnsetType = UNSET
    resource_type: ResourceType | UnsetType = UNSET
    time: datetime | UnsetType = UNSET
