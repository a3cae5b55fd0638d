"""The closed sets of words the API uses. Scopes of keys are `scopes.py`."""

from __future__ import annotations

from typing import Literal

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
