"""Groups of settings: headings of `coder server --help` and of the API, levels of the YAML file."""

from __future__ import annotations

from coder.coderd.config.setting import SettingGroup

GENERAL = SettingGroup("General")
CONFIG = SettingGroup("Config", description="Where settings are read from and written to.")
NETWORKING = SettingGroup("Networking", "networking")
HTTP = SettingGroup("HTTP", "http", parent=NETWORKING)
TLS = SettingGroup("TLS", "tls", "Certificates and what clients must bring to speak TLS with this server.", NETWORKING)
CLUSTER = SettingGroup("Cluster", "cluster", "What replicas of one deployment need to know of each other.", NETWORKING)
DERP = SettingGroup(
    "DERP", "derp", "Relays for connections that have no direct way, and whether there may be one.", NETWORKING
)
INTROSPECTION = SettingGroup("Introspection", "introspection", "Logs, metrics, traces and health of this server.")
HEALTH_CHECK = SettingGroup("Health Check", "healthcheck", parent=INTROSPECTION)
LOGGING = SettingGroup("Logging", "logging", parent=INTROSPECTION)
PROMETHEUS = SettingGroup("Prometheus", "prometheus", parent=INTROSPECTION)
TRACING = SettingGroup("Tracing", "tracing", parent=INTROSPECTION)
PPROF = SettingGroup("pprof", "pprof", parent=INTROSPECTION)
STATS_COLLECTION = SettingGroup("Stats Collection", "statsCollection", parent=INTROSPECTION)
USAGE_STATS = SettingGroup("Usage Stats", "usageStats", parent=STATS_COLLECTION)
OAUTH2 = SettingGroup("OAuth2", "oauth2", "Sign-in with another service's account.")
GITHUB = SettingGroup("GitHub", "github", parent=OAUTH2)
OIDC = SettingGroup("OIDC", "oidc")
TELEMETRY = SettingGroup("Telemetry", "telemetry", "Accepted for compatibility: this server sends no reports.")
PROVISIONING = SettingGroup(
    "Provisioning", "provisioning", "Settings for builds of workspaces and imports of templates."
)
PREBUILDS = SettingGroup("Workspace Prebuilds", "workspace_prebuilds", "Workspaces that are built ahead of demand.")
TEMPLATE_BUILDER = SettingGroup(
    "Template Builder", "templateBuilder", "Templates composed of bases and modules in the dashboard."
)
CLIENT = SettingGroup("Client", "client", "Settings for the command line, editors and browsers.")
RETENTION = SettingGroup("Retention", "retention", "Time before records are deleted; 0 keeps them.")
QUIET_HOURS = SettingGroup(
    "User Quiet Hours Schedule",
    "userQuietHoursSchedule",
    "Hours at which a workspace may be stopped because its template requires it.",
)
NOTIFICATIONS = SettingGroup("Notifications", "notifications", "Delivery of notifications to users.")
WEBHOOK = SettingGroup("Webhook", "webhook", parent=NOTIFICATIONS)
INBOX = SettingGroup("Inbox", "inbox", parent=NOTIFICATIONS)
EMAIL = SettingGroup("Email", "email", "The mail server for outgoing messages.")
EMAIL_AUTH = SettingGroup("Email Authentication", "emailAuth", "Credentials of this server at the mail server.", EMAIL)
EMAIL_TLS = SettingGroup("Email TLS", "emailTLS", "TLS with the mail server.", EMAIL)
DANGEROUS = SettingGroup("⚠️ Dangerous", "dangerous")
