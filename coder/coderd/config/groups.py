"""Groups of settings: headings of `coder server --help` and of the API, levels of the YAML file."""

from __future__ import annotations

from coder.coderd.config.setting import Group

GENERAL = Group("General")
CONFIG = Group("Config", description="Where settings are read from and written to.")
NETWORKING = Group("Networking", "networking")
HTTP = Group("HTTP", "http", parent=NETWORKING)
TLS = Group("TLS", "tls", "Certificates and what clients must bring to speak TLS with this server.", NETWORKING)
CLUSTER = Group("Cluster", "cluster", "What replicas of one deployment need to know of each other.", NETWORKING)
DERP = Group(
    "DERP", "derp", "Relays for connections that have no direct way, and whether there may be one.", NETWORKING
)
INTROSPECTION = Group("Introspection", "introspection", "What this server tells about itself.")
HEALTH_CHECK = Group("Health Check", "healthcheck", parent=INTROSPECTION)
LOGGING = Group("Logging", "logging", parent=INTROSPECTION)
PROMETHEUS = Group("Prometheus", "prometheus", parent=INTROSPECTION)
TRACING = Group("Tracing", "tracing", parent=INTROSPECTION)
PPROF = Group("pprof", "pprof", parent=INTROSPECTION)
STATS_COLLECTION = Group("Stats Collection", "statsCollection", parent=INTROSPECTION)
USAGE_STATS = Group("Usage Stats", "usageStats", parent=STATS_COLLECTION)
OAUTH2 = Group("OAuth2", "oauth2", "Signing in with another service's account.")
GITHUB = Group("GitHub", "github", parent=OAUTH2)
OIDC = Group("OIDC", "oidc")
TELEMETRY = Group("Telemetry", "telemetry", "Accepted for compatibility: this server reports to nobody.")
PROVISIONING = Group("Provisioning", "provisioning", "How builds of workspaces and imports of templates run.")
PREBUILDS = Group("Workspace Prebuilds", "workspace_prebuilds", "Workspaces that are built before anybody asks.")
CLIENT = Group("Client", "client", "What the command line, editors and browsers are told.")
RETENTION = Group("Retention", "retention", "How long records stay before they are deleted; 0 keeps them.")
QUIET_HOURS = Group(
    "User Quiet Hours Schedule",
    "userQuietHoursSchedule",
    "When a workspace may be stopped because its template asks for it.",
)
NOTIFICATIONS = Group("Notifications", "notifications", "How people hear of what happens.")
WEBHOOK = Group("Webhook", "webhook", parent=NOTIFICATIONS)
INBOX = Group("Inbox", "inbox", parent=NOTIFICATIONS)
EMAIL = Group("Email", "email", "The mail server messages are handed to.")
EMAIL_AUTH = Group("Email Authentication", "emailAuth", "Who this server is to the mail server.", EMAIL)
EMAIL_TLS = Group("Email TLS", "emailTLS", "TLS with the mail server.", EMAIL)
DANGEROUS = Group("⚠️ Dangerous", "dangerous")
