"""JSON shapes of enums: what server and client both speak."""

from __future__ import annotations

from typing import Literal

APIKeyScope = Literal[
    "ai_gateway_key:*",
    "ai_gateway_key:create",
    "ai_gateway_key:delete",
    "ai_gateway_key:read",
    "ai_gateway_key:update",
    "ai_model_price:*",
    "ai_model_price:read",
    "ai_model_price:update",
    "ai_provider:*",
    "ai_provider:create",
    "ai_provider:delete",
    "ai_provider:read",
    "ai_provider:update",
    "ai_seat:*",
    "ai_seat:create",
    "ai_seat:read",
    "aibridge_interception:*",
    "aibridge_interception:create",
    "aibridge_interception:read",
    "aibridge_interception:update",
    "all",
    "api_key:*",
    "api_key:create",
    "api_key:delete",
    "api_key:read",
    "api_key:update",
    "application_connect",
    "assign_org_role:*",
    "assign_org_role:assign",
    "assign_org_role:create",
    "assign_org_role:delete",
    "assign_org_role:read",
    "assign_org_role:unassign",
    "assign_org_role:update",
    "assign_role:*",
    "assign_role:assign",
    "assign_role:read",
    "assign_role:unassign",
    "audit_log:*",
    "audit_log:create",
    "audit_log:read",
    "boundary_log:*",
    "boundary_log:create",
    "boundary_log:delete",
    "boundary_log:read",
    "boundary_usage:*",
    "boundary_usage:delete",
    "boundary_usage:read",
    "boundary_usage:update",
    "chat:*",
    "chat:create",
    "chat:delete",
    "chat:read",
    "chat:share",
    "chat:update",
    "coder:all",
    "coder:apikeys.manage_self",
    "coder:application_connect",
    "coder:templates.author",
    "coder:templates.build",
    "coder:workspaces.access",
    "coder:workspaces.create",
    "coder:workspaces.delete",
    "coder:workspaces.operate",
    "connection_log:*",
    "connection_log:read",
    "connection_log:update",
    "crypto_key:*",
    "crypto_key:create",
    "crypto_key:delete",
    "crypto_key:read",
    "crypto_key:update",
    "debug_info:*",
    "debug_info:read",
    "deployment_config:*",
    "deployment_config:read",
    "deployment_config:update",
    "deployment_stats:*",
    "deployment_stats:read",
    "file:*",
    "file:create",
    "file:read",
    "group:*",
    "group:create",
    "group:delete",
    "group_member:*",
    "group_member:read",
    "group:read",
    "group:update",
    "idpsync_settings:*",
    "idpsync_settings:read",
    "idpsync_settings:update",
    "inbox_notification:*",
    "inbox_notification:create",
    "inbox_notification:read",
    "inbox_notification:update",
    "license:*",
    "license:create",
    "license:delete",
    "license:read",
    "mcp_server_config:*",
    "mcp_server_config:create",
    "mcp_server_config:delete",
    "mcp_server_config:read",
    "mcp_server_config:share",
    "mcp_server_config:update",
    "notification_message:*",
    "notification_message:create",
    "notification_message:delete",
    "notification_message:read",
    "notification_message:update",
    "notification_preference:*",
    "notification_preference:read",
    "notification_preference:update",
    "notification_template:*",
    "notification_template:read",
    "notification_template:update",
    "oauth2_app:*",
    "oauth2_app_code_token:*",
    "oauth2_app_code_token:create",
    "oauth2_app_code_token:delete",
    "oauth2_app_code_token:read",
    "oauth2_app:create",
    "oauth2_app:delete",
    "oauth2_app:read",
    "oauth2_app_secret:*",
    "oauth2_app_secret:create",
    "oauth2_app_secret:delete",
    "oauth2_app_secret:read",
    "oauth2_app_secret:update",
    "oauth2_app:update",
    "organization:*",
    "organization:create",
    "organization:delete",
    "organization_member:*",
    "organization_member:create",
    "organization_member:delete",
    "organization_member:read",
    "organization_member:update",
    "organization:read",
    "organization:update",
    "prebuilt_workspace:*",
    "prebuilt_workspace:delete",
    "prebuilt_workspace:update",
    "provisioner_daemon:*",
    "provisioner_daemon:create",
    "provisioner_daemon:delete",
    "provisioner_daemon:read",
    "provisioner_daemon:update",
    "provisioner_jobs:*",
    "provisioner_jobs:create",
    "provisioner_jobs:read",
    "provisioner_jobs:update",
    "replicas:*",
    "replicas:read",
    "system:*",
    "system:create",
    "system:delete",
    "system:read",
    "system:update",
    "tailnet_coordinator:*",
    "tailnet_coordinator:create",
    "tailnet_coordinator:delete",
    "tailnet_coordinator:read",
    "tailnet_coordinator:update",
    "task:*",
    "task:create",
    "task:delete",
    "task:read",
    "task:update",
    "template:*",
    "template:create",
    "template:delete",
    "template:read",
    "template:update",
    "template:use",
    "template:view_insights",
    "usage_event:*",
    "usage_event:create",
    "usage_event:read",
    "usage_event:update",
    "user:*",
    "user:create",
    "user:delete",
    "user:read",
    "user:read_personal",
    "user_secret:*",
    "user_secret:create",
    "user_secret:delete",
    "user_secret:read",
    "user_secret:update",
    "user_skill:*",
    "user_skill:create",
    "user_skill:delete",
    "user_skill:read",
    "user_skill:update",
    "user:update",
    "user:update_personal",
    "webpush_subscription:*",
    "webpush_subscription:create",
    "webpush_subscription:delete",
    "webpush_subscription:read",
    "workspace_agent_devcontainers:*",
    "workspace_agent_devcontainers:create",
    "workspace_agent_resource_monitor:*",
    "workspace_agent_resource_monitor:create",
    "workspace_agent_resource_monitor:read",
    "workspace_agent_resource_monitor:update",
    "workspace:*",
    "workspace:application_connect",
    "workspace_build_orchestration:*",
    "workspace_build_orchestration:create",
    "workspace_build_orchestration:delete",
    "workspace_build_orchestration:read",
    "workspace_build_orchestration:update",
    "workspace:create",
    "workspace:create_agent",
    "workspace:delete",
    "workspace:delete_agent",
    "workspace_dormant:*",
    "workspace_dormant:application_connect",
    "workspace_dormant:create",
    "workspace_dormant:create_agent",
    "workspace_dormant:delete",
    "workspace_dormant:delete_agent",
    "workspace_dormant:read",
    "workspace_dormant:share",
    "workspace_dormant:ssh",
    "workspace_dormant:start",
    "workspace_dormant:stop",
    "workspace_dormant:update",
    "workspace_dormant:update_agent",
    "workspace_proxy:*",
    "workspace_proxy:create",
    "workspace_proxy:delete",
    "workspace_proxy:read",
    "workspace_proxy:update",
    "workspace:read",
    "workspace:share",
    "workspace:ssh",
    "workspace:start",
    "workspace:stop",
    "workspace:update",
    "workspace:update_agent",
]


AgentSubsystem = Literal["envbox", "envbuilder", "exectrace"]


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


AutomaticUpdates = Literal["always", "never"]


BuildReason = Literal[
    "autostart",
    "autostop",
    "cli",
    "dashboard",
    "dormancy",
    "initiator",
    "jetbrains_connection",
    "ssh_connection",
    "task_auto_pause",
    "task_manual_pause",
    "task_resume",
    "vscode_connection",
]


CORSBehavior = Literal["passthru", "simple"]


CancelWorkspaceBuildStatus = Literal["pending", "running"]


ConnectionDirection = Literal["agent_to_client", "client_to_server", "server_to_agent"]


ConnectionLogStatus = Literal["completed", "ongoing"]


ConnectionMethod = Literal["derp", "direct", ""]


ConnectionType = Literal[
    "jetbrains",
    "port_forwarding",
    "reconnecting_pty",
    "ssh",
    "tunnel",
    "vscode",
    "workspace_app",
]


CreateWorkspaceBuildReason = Literal[
    "cli",
    "dashboard",
    "jetbrains_connection",
    "ssh_connection",
    "task_manual_pause",
    "task_resume",
    "vscode_connection",
]


CryptoKeyFeature = Literal[
    "chat_files_token", "nats_ca", "oidc_convert", "tailnet_resume", "workspace_apps_api_key", "workspace_apps_token"
]


DiagnosticSeverityString = Literal["error", "warning"]


DisconnectInitiator = Literal["agent", "client", "network", "server", ""]


DisconnectReason = Literal[
    "client_closed",
    "control_plane_lost",
    "graceful",
    "network_error",
    "protocol_error",
    "server_shutdown",
    "",
    "workspace_stopped",
]


DisplayApp = Literal["port_forwarding_helper", "ssh_helper", "vscode", "vscode_insiders", "web_terminal"]


EnhancedExternalAuthProvider = Literal[
    "azure-devops",
    "azure-devops-entra",
    "bitbucket-cloud",
    "bitbucket-server",
    "github",
    "gitlab",
    "gitea",
    "jfrog",
    "slack",
]


Entitlement = Literal["entitled", "grace_period", "not_entitled"]


Experiment = Literal[
    "ai-gateway-seat-exclusion",
    "agent-lifecycle-hooks",
    "auto-fill-parameters",
    "chat-advisor",
    "chat-virtual-desktop",
    "example",
    "mcp-server-http",
    "mcp-tool-search",
    "nats_pubsub",
    "notifications",
    "oauth2",
    "workspace-build-updates",
    "workspace-capable-licensing",
    "workspace-usage",
]


FeatureName = Literal[
    "aibridge",
    "ai_governance_user_limit",
    "access_control",
    "advanced_template_scheduling",
    "agent_runtime_hours",
    "appearance",
    "audit_log",
    "boundary",
    "browser_only",
    "connection_log",
    "control_shared_ports",
    "custom_roles",
    "external_provisioner_daemons",
    "external_token_encryption",
    "high_availability",
    "managed_agent_limit",
    "multiple_external_auth",
    "multiple_organizations",
    "scim",
    "service_accounts",
    "task_batch_actions",
    "template_rbac",
    "user_limit",
    "user_role_management",
    "workspace_batch_actions",
    "workspace_external_agent",
    "workspace_prebuilds",
    "workspace_proxy",
]


FeatureSet = Literal["enterprise", "", "premium"]


GroupSource = Literal["oidc", "user"]


HealthCode = Literal[
    "EACS03",
    "EACS02",
    "EACS04",
    "EACS01",
    "EDERP03",
    "EDERP01",
    "EDERP02",
    "EDB01",
    "EDB02",
    "EPD03",
    "EPD02",
    "EPD01",
    "EWP02",
    "EWP04",
    "EWP01",
    "EUNKNOWN",
    "EWS01",
    "EWS02",
    "EWS03",
]


HealthSection = Literal["AccessURL", "DERP", "Database", "ProvisionerDaemons", "Websocket", "WorkspaceProxy"]


HealthSeverity = Literal["error", "ok", "warning"]


InsightsReportInterval = Literal["day", "week"]


JobErrorCode = Literal["INSUFFICIENT_QUOTA", "REQUIRED_TEMPLATE_VARIABLES"]


LogLevel = Literal["debug", "error", "info", "trace", "warn"]


LogSource = Literal["provisioner", "provisioner_daemon"]


LoginType = Literal["github", "none", "oidc", "password", "token", ""]


OAuth2ClientType = Literal["confidential", "public"]


OAuth2ErrorCode = Literal[
    "access_denied",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
    "unsupported_token_type",
]


OAuth2PKCECodeChallengeMethod = Literal["plain", "S256"]


OAuth2ProviderGrantType = Literal["authorization_code", "client_credentials", "implicit", "password", "refresh_token"]


OAuth2ProviderResponseType = Literal["code", "token"]


OAuth2RevocationTokenTypeHint = Literal["access_token", "refresh_token"]


OAuth2TokenEndpointAuthMethod = Literal["client_secret_basic", "client_secret_post", "none"]


OAuth2TokenType = Literal["Bearer", "DPoP"]


OptionType = Literal["bool", "list(string)", "number", "string"]


ParameterFormType = Literal[
    "checkbox", "", "dropdown", "error", "input", "multi-select", "radio", "slider", "switch", "tag-select", "textarea"
]


PostgresAuth = Literal["awsiamrds", "password"]


PremiumFunnelSource = Literal[
    "aibridge_session_threads",
    "aibridge_sessions",
    "ai_gateway_keys",
    "ai_governance",
    "appearance",
    "audit_log",
    "browser_only",
    "connection_log",
    "custom_roles",
    "direct",
    "external_auth",
    "groups",
    "idp_org_sync",
    "idp_sync",
    "multiple_organizations",
    "observability",
    "provisioner_keys",
    "provisioners",
    "template_permissions",
    "workspace_proxies",
]


PremiumFunnelVariant = Literal["ai_governance", "premium", "small"]


ProvisionerDaemonStatus = Literal["busy", "idle", "offline"]


ProvisionerJobStatus = Literal["canceled", "canceling", "failed", "pending", "running", "succeeded", "unknown"]


ProvisionerJobType = Literal["template_version_dry_run", "template_version_import", "workspace_build"]


ProvisionerType = Literal["echo", "terraform"]


ProxyHealthStatus = Literal["ok", "unhealthy", "unreachable", "unregistered"]


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


SecretsFileFormat = Literal["env", "json", "yaml"]


ServerSentEventType = Literal["data", "error", "ping"]


ShareableWorkspaceOwners = Literal["everyone", "none", "service_accounts"]


SharedWorkspaceActorType = Literal["group", "user"]


TaskLogType = Literal["input", "output"]


TaskState = Literal["complete", "failed", "idle", "working"]


TaskStatus = Literal["active", "error", "initializing", "paused", "pending", "unknown"]


TemplateAppsType = Literal["app", "builtin"]


TemplateInsightsSection = Literal["interval_reports", "report"]


TemplateRole = Literal["admin", "", "use"]


TerminalFontName = Literal["fira-code", "geist-mono", "ibm-plex-mono", "jetbrains-mono", "source-code-pro", ""]


ThemeMode = Literal["single", "sync", ""]


ThinkingDisplayMode = Literal["always_collapsed", "always_expanded", "auto", "preview"]


TimingStage = Literal["apply", "connect", "cron", "graph", "init", "plan", "start", "stop"]


UsageAppName = Literal["jetbrains", "reconnecting-pty", "ssh", "vscode"]


UserStatus = Literal["active", "dormant", "suspended"]


ValidationMonotonicOrder = Literal["decreasing", "increasing"]


WorkspaceAgentDevcontainerStatus = Literal["deleting", "error", "running", "starting", "stopped", "stopping"]


WorkspaceAgentGitServerMessageType = Literal["changes", "error"]


WorkspaceAgentLifecycle = Literal[
    "created",
    "off",
    "ready",
    "shutdown_error",
    "shutdown_timeout",
    "shutting_down",
    "start_error",
    "start_timeout",
    "starting",
]


WorkspaceAgentPortShareLevel = Literal["authenticated", "organization", "owner", "public"]


WorkspaceAgentPortShareProtocol = Literal["http", "https"]


WorkspaceAgentScriptStatus = Literal["exit_failure", "ok", "pipes_left_open", "timed_out"]


WorkspaceAgentStartupScriptBehavior = Literal["blocking", "non-blocking"]


WorkspaceAgentStatus = Literal["connected", "connecting", "disconnected", "timeout"]


WorkspaceAppHealth = Literal["disabled", "healthy", "initializing", "unhealthy"]


WorkspaceAppOpenIn = Literal["slim-window", "tab"]


WorkspaceAppSharingLevel = Literal["authenticated", "organization", "owner", "public"]


WorkspaceAppStatusState = Literal["complete", "failure", "idle", "working"]


WorkspaceRole = Literal["admin", "", "use"]


WorkspaceStatus = Literal[
    "canceled", "canceling", "deleted", "deleting", "failed", "pending", "running", "starting", "stopped", "stopping"
]


WorkspaceTransition = Literal["delete", "start", "stop"]
