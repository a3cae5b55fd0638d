"""Names of Go's types in the details of refused bodies, where the fields here do not show them.

A body's type has the name of its class, and a field's type follows from its hint; these tables hold the exceptions:
classes with other names, enumerations, and numbers that are not int64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GO_STRUCTS: Final[Mapping[str, str]] = {
    "AclChange": "codersdk.UpdateTemplateACL",
    "CspReport": "coderd.cspViolation",
    "DeregisterWorkspaceProxyRequest": "wsproxysdk.DeregisterWorkspaceProxyRequest",
    "DismissRequest": "healthsdk.UpdateHealthSettings",
    "ExtendWorkspaceRequest": "codersdk.PutExtendWorkspaceRequest",
    "GroupSyncChange": "codersdk.GroupSyncSettings",
    "IssueTokenRequest": "workspaceapps.IssueTokenRequest",
    "OrganizationSyncChange": "codersdk.OrganizationSyncSettings",
    "PermissionSpec": "codersdk.Permission",
    "ReadStatus": "codersdk.UpdateInboxNotificationReadStatusRequest",
    "RegisterWorkspaceProxyRequest": "wsproxysdk.RegisterWorkspaceProxyRequest",
    "ReportAppStatsRequest": "wsproxysdk.ReportAppStatsRequest",
    "RoleSpec": "codersdk.CustomRoleRequest",
    "RoleSyncChange": "codersdk.RoleSyncSettings",
    "SentCheck": "codersdk.AuthorizationCheck",
    "SentObject": "codersdk.AuthorizationObject",
    "SyncMapping": "codersdk.IDPSyncMapping[string]",
    "_AppStatus": "agentsdk.PatchAppStatus",
    "_AwsIdentity": "agentsdk.AWSInstanceIdentityToken",
    "_AzureIdentity": "agentsdk.AzureInstanceIdentityToken",
    "_GoogleIdentity": "agentsdk.GoogleInstanceIdentityToken",
    "_Line": "agentsdk.Log",
    "_Logs": "agentsdk.PatchLogs",
    "_Source": "agentsdk.PostLogSourceRequest",
}
"""Class of a body or of a part of one -> its Go type."""

_LEVEL: Final = "codersdk.WorkspaceAgentPortShareLevel"
_TRANSITION: Final = "codersdk.WorkspaceTransition"
GO_FIELDS: Final[Mapping[str, str]] = {
    "AuthorizationCheck.action": "codersdk.RBACAction",
    "AuthorizationObject.resource_type": "codersdk.RBACResource",
    "ConvertLoginRequest.to_type": "codersdk.LoginType",
    "CreateGroupRequest.quota_allowance": "int",
    "CreateTemplateRequest.cors_behavior": "codersdk.CORSBehavior",
    "CreateTemplateRequest.max_port_share_level": _LEVEL,
    "CreateTemplateVersionRequest.provisioner": "codersdk.ProvisionerType",
    "CreateTemplateVersionRequest.storage_method": "codersdk.ProvisionerStorageMethod",
    "CreateTestAuditLogRequest.action": "codersdk.AuditAction",
    "CreateTestAuditLogRequest.build_reason": "codersdk.BuildReason",
    "CreateTestAuditLogRequest.resource_type": "codersdk.ResourceType",
    "CreateTokenRequest.lifetime": "time.Duration",
    "CreateTokenRequest.scope": "codersdk.APIKeyScope",
    "CreateTokenRequest.scopes": "[]codersdk.APIKeyScope",
    "CreateUserRequestWithOrgs.login_type": "codersdk.LoginType",
    "CreateUserRequestWithOrgs.user_status": "codersdk.UserStatus",
    "CreateWorkspaceBuildOnSuccessRequest.transition": _TRANSITION,
    "CreateWorkspaceBuildRequest.log_level": "codersdk.ProvisionerLogLevel",
    "CreateWorkspaceBuildRequest.state": "[]uint8",
    "CreateWorkspaceBuildRequest.reason": "codersdk.CreateWorkspaceBuildReason",
    "CreateWorkspaceBuildRequest.transition": _TRANSITION,
    "CreateWorkspaceRequest.automatic_updates": "codersdk.AutomaticUpdates",
    "DebugProfileOptions.Duration": "time.Duration",
    "DeleteWorkspaceAgentPortShareRequest.port": "int32",
    "DynamicParametersRequest.id": "int",
    "ImportUserSecretsRequest.format": "codersdk.SecretsFileFormat",
    "PatchGroupRequest.quota_allowance": "int",
    "Permission.action": "codersdk.RBACAction",
    "Permission.resource_type": "codersdk.RBACResource",
    "PostWorkspaceUsageRequest.app_name": "codersdk.UsageAppName",
    "TemplateBuilderSessionRequest.event_type": "codersdk.TemplateBuilderSessionEventType",
    "UpdateHealthSettings.dismissed_healthchecks": "[]healthsdk.HealthSection",
    "UpdateTemplateACL.group_perms": "map[string]codersdk.TemplateRole",
    "UpdateTemplateACL.user_perms": "map[string]codersdk.TemplateRole",
    "UpdateTemplateMeta.cors_behavior": "codersdk.CORSBehavior",
    "UpdateTemplateMeta.max_port_share_level": _LEVEL,
    "UpdateUserAppearanceSettingsRequest.terminal_font": "codersdk.TerminalFontName",
    "UpdateUserAppearanceSettingsRequest.theme_mode": "codersdk.ThemeMode",
    "UpdateUserPreferenceSettingsRequest.thinking_display_mode": "codersdk.ThinkingDisplayMode",
    "UpdateWorkspaceACL.group_roles": "map[string]codersdk.WorkspaceRole",
    "UpdateWorkspaceACL.user_roles": "map[string]codersdk.WorkspaceRole",
    "UpdateWorkspaceAutomaticUpdatesRequest.automatic_updates": "codersdk.AutomaticUpdates",
    "UpdateWorkspaceBuildStateRequest.state": "[]uint8",
    "UpdateWorkspaceSharingSettingsRequest.shareable_workspace_owners": "codersdk.ShareableWorkspaceOwners",
    "UpsertWorkspaceAgentPortShareRequest.port": "int32",
    "UpsertWorkspaceAgentPortShareRequest.protocol": "codersdk.WorkspaceAgentPortShareProtocol",
    "UpsertWorkspaceAgentPortShareRequest.share_level": _LEVEL,
}
"""Go's struct and field -> the field's Go type."""
BITS: Final[Mapping[str, int]] = {"int32": 32, "int": 64, "int64": 64, "time.Duration": 64}
"""Width of Go's integers by the type's name."""


def go_struct(kind: type) -> str:
    """Return the full name of a body's Go type, such as "codersdk.CreateUserRequest"."""
    return GO_STRUCTS.get(kind.__name__) or f"codersdk.{kind.__name__}"


def short_name(go_type: str) -> str:
    """Return a Go type's name without its package, as errors about fields have it."""
    return go_type.partition(".")[2] or go_type


def field_type(kind: type, field: str) -> str:
    """Return the Go type of a field that `GO_FIELDS` names, or ""."""
    return GO_FIELDS.get(f"{short_name(go_struct(kind))}.{field}", "")


def fits_integer(value: int, go_type: str) -> bool:
    """Return whether Go can store the number in an integer of this type."""
    bound = 1 << (BITS.get(go_type, 64) - 1)
    return -bound <= value < bound


def item_type(go_type: str) -> str:
    """Return the type of the items of a list or map, "" for an unknown one."""
    return go_type.partition("]")[2]
