"""Every setting of `coder server`: flag, environment variable, YAML path, kind, default, group and help.

One row a setting. The environment variable is `CODER_` plus the flag in capitals unless the row names another.
Names, kinds and defaults are upstream v2.34's; the AI gateway's are left out with the feature. What has no
attribute in `config.ServerConfig` is accepted, kept and shown, nothing more.
"""

# ruff: noqa: E501 - a table is read by its rows

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coder.base.config import Kind, Option
from coder.base.duration import parse_duration

_ROWS = """
## Networking | networking
access-url | url | | accessURL | The URL people and workspaces use to reach this server.
wildcard-access-url | string | | wildcardAccessURL | Host pattern for workspace applications, such as *.example.com.
docs-url | url | https://coder.com/docs/@v2.34.0 | docsURL | Where the documentation is.
redirect-to-access-url | bool | | redirectToAccessURL | Redirect requests for other hosts to the access URL.
proxy-trusted-headers | list | | proxyTrustedHeaders | Headers to take the client's address from, such as X-Forwarded-For.
proxy-trusted-origins | list | | proxyTrustedOrigins | Proxy addresses (CIDR) whose headers are trusted.
secure-auth-cookie | bool | false | secureAuthCookie | Set Secure on session cookies; the default follows the access URL.
samesite-auth-cookie | string | lax | sameSiteAuthCookie | SameSite of session cookies (lax, none).
host-prefix-cookie | bool | false | hostPrefixCookie | Prefix cookie names with __Host-.
## Networking / HTTP | networking.http
http-address | string | 127.0.0.1:3000 | httpAddress | Where plain HTTP listens; empty turns it off.
disable-password-auth | bool | | disablePasswordAuth | Refuse password logins (owners excepted).
disable-session-expiry-refresh | bool | | disableSessionExpiryRefresh | Sessions end after their lifetime even when used.
session-duration | duration | 24h | sessionDuration | Lifetime of a browser session.
max-token-lifetime | duration | 876600h | maxTokenLifetime | Longest lifetime of an API token.
max-admin-token-lifetime | duration | 168h | maxAdminTokenLifetime | Longest lifetime of an owner's API token.
default-token-lifetime | duration | 168h | defaultTokenLifetime | Lifetime of an API token when none is asked for.
default-oauth-refresh-lifetime | duration | 720h | defaultOAuthRefreshLifetime | Lifetime of OAuth2 refresh tokens.
proxy-health-interval | duration | 1m | proxyHealthInterval | How often workspace proxies are checked.
additional-csp-policy | list | | additionalCSPPolicy | Directives added to the Content-Security-Policy.
api-rate-limit | int | 512 | apiRateLimit | Requests a minute per user or address; a negative number turns it off. | hidden
dangerous-disable-rate-limits | bool | | disableAll | Turn all rate limits off. | hidden
dangerous-allow-cors-requests | bool | | dangerousAllowCORSRequests | Answer cross-origin requests. | hidden
dangerous-allow-path-app-sharing | bool | | dangerousAllowPathAppSharing | Let path applications be shared.
dangerous-allow-path-app-site-owner-access | bool | | dangerousAllowPathAppSiteOwnerAccess | Let site owners open others' path applications.
## Networking / TLS | networking.tls
tls-enable | bool | | enable | Listen with TLS.
tls-address | string | 127.0.0.1:3443 | address | Where TLS listens.
tls-cert-file | list | | certFiles | PEM certificate files, the leaf first in each.
tls-key-file | list | | keyFiles | PEM key files, in the order of the certificates.
tls-client-auth | string | none | clientAuth | Client certificates: none, request, require-any, verify-if-given, require-and-verify.
tls-client-ca-file | string | | clientCAFile | CA file client certificates are checked against.
tls-client-cert-file | string | | clientCertFile | Certificate this server shows to others.
tls-client-key-file | string | | clientKeyFile | Key of that certificate.
tls-min-version | string | tls12 | minVersion | Lowest TLS version (tls12, tls13).
tls-ciphers | list | | tlsCiphers | Cipher suites allowed with TLS 1.2.
tls-allow-insecure-ciphers | bool | false | tlsAllowInsecureCiphers | Allow ciphers known to be weak.
tls-redirect-http-to-https | bool | true | redirectHTTP | Redirect HTTP to HTTPS when TLS is on. | hidden
strict-transport-security | int | 0 | strictTransportSecurity | max-age of the HSTS header; 0 sends none.
strict-transport-security-options | list | | strictTransportSecurityOptions | Further directives of the HSTS header.
address | string | | | Deprecated: http-address or tls-address. | hidden short=a
## Networking / Cluster | networking.cluster
cluster-host | string | | clusterHost | Without effect: replicas find each other by the database.
## Networking / DERP | networking.derp
derp-server-enable | bool | true | enable | Serve the embedded relay.
derp-server-region-id | int | 999 | regionID | Region id of the embedded relay. | hidden
derp-server-region-code | string | coder | regionCode | Region code of the embedded relay. | hidden
derp-server-region-name | string | Coder Embedded Relay | regionName | Region name of the embedded relay.
derp-server-stun-addresses | list | stun.l.google.com:19302,stun1.l.google.com:19302,stun2.l.google.com:19302,stun3.l.google.com:19302,stun4.l.google.com:19302 | stunAddresses | STUN servers; "disable" for none.
derp-server-relay-url | url | | relayURL | URL other replicas reach this one at.
derp-config-url | string | | url | URL of a DERP map to add. | env=CODER_DERP_CONFIG_URL
derp-config-path | string | | configPath | File with a DERP map to add. | env=CODER_DERP_CONFIG_PATH
derp-force-websockets | bool | | forceWebSockets | Clients speak to relays over WebSockets only.
block-direct-connections | bool | | blockDirect | Clients and agents talk over the relay only. | env=CODER_BLOCK_DIRECT
wireguard-address | string | | wireguardAddress | Where plain WireGuard clients are served (UDP host:port, such as :51820); empty turns it off.
wireguard-endpoint | string | | wireguardEndpoint | host:port clients are told to use; the default is the access URL's host and the port of the WireGuard address.
derp-server-bytes-per-second | int | 0 | bytesPerSecond | What each client of the embedded relay may send, in bytes a second; 0 for no limit. | env=CODER_DERP_SERVER_BYTES_PER_SECOND hidden
stun-address | string | | stunAddress | Where the embedded STUN server listens (UDP); empty turns it off. | env=CODER_STUN_ADDRESS hidden
## Introspection / Health Check | introspection.healthcheck
health-check-refresh | duration | 10m | refresh | How long a health report is kept.
health-check-threshold-database | duration | 15ms | thresholdDatabase | A slower database is reported.
## Introspection / Logging | introspection.logging
log-human | string | /dev/stderr | humanPath | File for logs as text. | env=CODER_LOGGING_HUMAN
log-json | string | | jsonPath | File for logs as JSON lines. | env=CODER_LOGGING_JSON
log-stackdriver | string | | stackdriverPath | File for logs in Stackdriver's form. | env=CODER_LOGGING_STACKDRIVER
log-filter | list | | filter | Show debug messages of loggers matching these expressions. | env=CODER_LOG_FILTER short=l
enable-terraform-debug-mode | bool | false | enableTerraformDebugMode | Let templates log Terraform's debug output.
verbose | bool | | verbose | Show debug messages. | hidden
## Introspection / Prometheus | introspection.prometheus
prometheus-enable | bool | | enable | Serve metrics.
prometheus-address | string | 127.0.0.1:2112 | address | Where metrics are served.
prometheus-collect-agent-stats | bool | | collect_agent_stats | Collect statistics of agents.
prometheus-collect-db-metrics | bool | false | collect_db_metrics | Collect timings of queries.
prometheus-aggregate-agent-stats-by | list | agent_name,template_name,username,workspace_name | aggregate_agent_stats_by | Labels agent statistics are kept by.
## Introspection / Tracing | introspection.tracing
trace | bool | | enable | Send traces by OpenTelemetry. | env=CODER_TRACE_ENABLE
trace-logs | bool | | captureLogs | Add log lines to traces.
trace-datadog | bool | false | dataDog | Without effect: that is about Go's runtime. | hidden
trace-honeycomb-api-key | string | | | Send traces to Honeycomb with this key. | secret
## Introspection / pprof | introspection.pprof
pprof-enable | bool | | enable | Serve debug endpoints.
pprof-address | string | 127.0.0.1:6060 | address | Where debug endpoints are served.
## Stats Collection / Usage Stats | statsCollection.usageStats
stats-collection-usage-stats-enable | bool | true | enable | Collect usage for insights.
## OAuth2 / GitHub | oauth2.github
oauth2-github-client-id | string | | clientID | Client id of the GitHub application.
oauth2-github-client-secret | string | | | Client secret of the GitHub application. | secret
oauth2-github-device-flow | bool | false | deviceFlow | Log in by device flow.
oauth2-github-default-provider-enable | bool | true | defaultProviderEnable | Offer the default GitHub application.
oauth2-github-allowed-orgs | list | | allowedOrgs | Organizations whose members may log in.
oauth2-github-allowed-teams | list | | allowedTeams | Teams (org/team) whose members may log in.
oauth2-github-allow-signups | bool | | allowSignups | Let new users sign up.
oauth2-github-allow-everyone | bool | | allowEveryone | Let every GitHub user log in.
oauth2-github-enterprise-base-url | string | | enterpriseBaseURL | GitHub Enterprise's URL.
## OIDC | oidc
oidc-allow-signups | bool | true | allowSignups | Let new users sign up.
oidc-client-id | string | | clientID | Client id.
oidc-client-secret | string | | | Client secret. | secret
oidc-client-key-file | string | | oidcClientKeyFile | Private key instead of a client secret.
oidc-client-cert-file | string | | oidcClientCertFile | Certificate of that key.
oidc-email-domain | list | | emailDomain | E-mail domains that may log in.
oidc-issuer-url | string | | issuerURL | The identity provider.
oidc-scopes | list | openid,profile,email | scopes | Scopes asked for.
oidc-ignore-email-verified | bool | | ignoreEmailVerified | Accept unverified e-mail addresses.
oidc-username-field | string | preferred_username | usernameField | Claim of the username.
oidc-name-field | string | name | nameField | Claim of the full name.
oidc-email-field | string | email | emailField | Claim of the e-mail address.
oidc-auth-url-params | struct | {"access_type": "offline"} | authURLParams | Parameters added to the login URL.
oidc-ignore-userinfo | bool | false | ignoreUserInfo | Use the claims of the id token only.
oidc-group-field | string | | groupField | Claim of groups.
oidc-group-mapping | struct | {} | groupMapping | Names of groups there and here.
oidc-group-auto-create | bool | false | enableGroupAutoCreate | Create groups that are missing. | env=CODER_OIDC_GROUP_AUTO_CREATE
oidc-group-regex-filter | string | .* | groupRegexFilter | Only groups matching this.
oidc-allowed-groups | list | | groupAllowed | Only members of these groups may log in.
oidc-user-role-field | string | | userRoleField | Claim of site roles.
oidc-user-role-mapping | struct | {} | userRoleMapping | Names of roles there and here.
oidc-user-role-default | list | | userRoleDefault | Roles everybody gets.
oidc-organization-field | string | | organizationField | Claim of organizations. | hidden
oidc-organization-mapping | struct | {} | organizationMapping | Organizations there and here. | hidden
oidc-organization-assign-default | bool | true | organizationAssignDefault | Put everybody into the default organization. | hidden
oidc-sign-in-text | string | OpenID Connect | signInText | Text of the login button.
oidc-icon-url | url | | iconURL | Icon of the login button.
oidc-signups-disabled-text | string | | signupsDisabledText | Shown when signups are off.
oidc-redirect-url | url | | oidc-redirect-url | Where the provider sends people back to, when not the access URL. | hidden
oidc-redirect-allowed-hosts | list | | oidcRedirectAllowedHosts | Without effect: people come back to the access URL. | hidden
oidc-repair-links | bool | true | oidc-repair-links | Without effect: links are by issuer and subject. | hidden
oidc-access-token-claims | bool | false | accessTokenClaims | Without effect: claims come from the id token and the user info. | hidden
dangerous-oidc-email-fallback | bool | | dangerousOidcEmailFallback | Without effect. | hidden
dangerous-oidc-skip-issuer-checks | bool | | dangerousSkipIssuerChecks | Do not compare the issuer.
## Provisioning | provisioning
provisioner-daemons | int | 3 | daemons | Built-in provisioner daemons.
provisioner-types | list | terraform | daemonTypes | What they can run (terraform, echo). | hidden
provisioner-daemon-poll-interval | duration | 1s | daemonPollInterval | Without effect: daemons are woken.
provisioner-daemon-poll-jitter | duration | 100ms | daemonPollJitter | Without effect: daemons are woken.
provisioner-force-cancel-interval | duration | 10m | forceCancelInterval | A cancelled job is killed after this.
provisioner-job-timeout | duration | 4h | jobTimeout | A job of a built-in daemon that runs longer is interrupted and failed; 0 never.
provisioner-daemon-psk | string | | | Key shared with external daemons. | secret
aws-identity-certificates | string | | awsIdentityCertificates | PEM file with Amazon's certificates for instance identity documents, one for each of your regions.
provisioner-strict-tags | bool | false | strictTags | Untagged jobs run on untagged daemons only.
terraform-path | string | terraform | terraformPath | terraform or tofu the built-in daemons run: a path, or a name on PATH.
terraform-provider | string | builtin | terraformProvider | "upstream" lets terraform install the coder/coder provider.
## Workspace Prebuilds | workspace_prebuilds
workspace-prebuilds-reconciliation-interval | duration | 1m | reconciliation_interval | How often prebuilt workspaces are counted.
workspace-prebuilds-reconciliation-backoff-interval | duration | 1m | reconciliation_backoff_interval | Without effect. | hidden
workspace-prebuilds-reconciliation-backoff-lookback-period | duration | 1h | reconciliation_backoff_lookback_period | Without effect. | hidden
workspace-prebuilds-failure-hard-limit | int | 3 | failure_hard_limit | Without effect. | hidden
## Retention | retention
audit-logs-retention | duration | 0 | audit_logs | Audit entries older than this are deleted; 0 keeps them.
connection-logs-retention | duration | 0 | connection_logs | Connection entries older than this are deleted; 0 keeps them.
api-keys-retention | duration | 7d | api_keys | Expired keys are kept this long.
workspace-agent-logs-retention | duration | 7d | workspace_agent_logs | Agent logs are kept this long.
boundary-log-retention | duration | 0 | boundary_logs | Without effect: there are no boundary logs.
## User Quiet Hours Schedule | userQuietHoursSchedule
default-quiet-hours-schedule | string | CRON_TZ=UTC 0 0 * * * | defaultQuietHoursSchedule | When workspaces may be stopped for a template's requirement. | env=CODER_QUIET_HOURS_DEFAULT_SCHEDULE
allow-custom-quiet-hours | bool | true | allowCustomQuietHours | Let users choose theirs.
## Client | client
ssh-hostname-prefix | string | coder. | sshHostnamePrefix | Prefix of host names in SSH configurations. | hidden
workspace-hostname-suffix | string | coder | workspaceHostnameSuffix | Suffix of host names in SSH configurations.
ssh-config-options | list | | sshConfigOptions | Options written to users' SSH configurations (key=value).
web-terminal-renderer | string | canvas | webTerminalRenderer | How the web terminal draws (canvas, webgl, dom).
hide-ai-tasks | bool | false | hideAITasks | Without effect: the dashboard has no page of tasks.
cli-upgrade-message | string | | cliUpgradeMessage | Shown by clients of another version.
## Notifications | notifications
notifications-method | string | smtp | method | How messages go out (smtp, webhook).
notifications-webhook-endpoint | url | | webhook.endpoint | Where webhooks are sent.
notifications-inbox-enabled | bool | true | inbox.enabled | Show messages in the dashboard.
notifications-max-send-attempts | int | 5 | maxSendAttempts | Attempts before a message is given up.
notifications-retry-interval | duration | 5m | retryInterval | Wait between two attempts. | hidden
notifications-dispatch-timeout | duration | 1m | dispatchTimeout | An attempt is given up after this. | hidden
email-from | string | | email.from | Sender of e-mails.
email-smarthost | string | | email.smarthost | Mail server, host:port.
email-hello | string | localhost | email.hello | Name given to the mail server.
email-force-tls | bool | false | email.forceTLS | Speak TLS to the mail server from the first byte.
email-auth-username | string | | email.emailAuth.username | User at the mail server.
email-auth-password | string | | | Password at the mail server. | secret
email-auth-password-file | string | | email.emailAuth.passwordFile | File with that password.
email-tls-starttls | bool | | email.emailTLS.startTLS | Turn to TLS once connected to the mail server.
email-tls-skip-verify | bool | | email.emailTLS.insecureSkipVerify | Accept any certificate of the mail server. | env=CODER_EMAIL_TLS_SKIPVERIFY
email-tls-ca-cert-file | string | | email.emailTLS.caCertFile | CA file the mail server is checked against. | env=CODER_EMAIL_TLS_CACERTFILE
email-tls-server-name | string | | email.emailTLS.serverName | Name the mail server's certificate must have. | env=CODER_EMAIL_TLS_SERVERNAME
email-tls-cert-file | string | | email.emailTLS.certFile | Certificate shown to the mail server. | env=CODER_EMAIL_TLS_CERTFILE
email-tls-cert-key-file | string | | email.emailTLS.certKeyFile | Its private key. | env=CODER_EMAIL_TLS_CERTKEYFILE
email-auth-identity | string | | email.emailAuth.identity | Without effect: the user is who signs in.
notifications-store-sync-interval | duration | 2s | storeSyncInterval | Without effect: results are written at once. | hidden
notifications-store-sync-buffer-size | int | 50 | storeSyncBufferSize | Without effect: results are written at once. | hidden
notifications-lease-period | duration | 2m | leasePeriod | Without effect: a message is leased for as long as it may take. | hidden
notifications-lease-count | int | 20 | leaseCount | Without effect: messages are leased one at a time. | hidden
notifications-fetch-interval | duration | 15s | fetchInterval | Without effect: senders are woken. | hidden
## Notifications / Email | notifications.email
notifications-email-from | string | | from | Deprecated: email-from. | hidden
notifications-email-smarthost | string | | smarthost | Deprecated: email-smarthost. | hidden
notifications-email-hello | string | localhost | hello | Deprecated: email-hello. | hidden
notifications-email-force-tls | bool | false | forceTLS | Deprecated: email-force-tls. | hidden
notifications-email-auth-identity | string | | emailAuth.identity | Deprecated: email-auth-identity. | hidden
notifications-email-auth-username | string | | emailAuth.username | Deprecated: email-auth-username. | hidden
notifications-email-auth-password | string | | | Deprecated: email-auth-password. | secret hidden
notifications-email-auth-password-file | string | | emailAuth.passwordFile | Deprecated: email-auth-password-file. | hidden
notifications-email-tls-starttls | bool | | emailTLS.startTLS | Deprecated: email-tls-starttls. | hidden
notifications-email-tls-server-name | string | | emailTLS.serverName | Deprecated: email-tls-server-name. | hidden env=CODER_NOTIFICATIONS_EMAIL_TLS_SERVERNAME
notifications-email-tls-skip-verify | bool | | emailTLS.insecureSkipVerify | Deprecated: email-tls-skip-verify. | hidden env=CODER_NOTIFICATIONS_EMAIL_TLS_SKIPVERIFY
notifications-email-tls-ca-cert-file | string | | emailTLS.caCertFile | Deprecated: email-tls-ca-cert-file. | hidden env=CODER_NOTIFICATIONS_EMAIL_TLS_CACERTFILE
notifications-email-tls-cert-file | string | | emailTLS.certFile | Deprecated: email-tls-cert-file. | hidden env=CODER_NOTIFICATIONS_EMAIL_TLS_CERTFILE
notifications-email-tls-cert-key-file | string | | emailTLS.certKeyFile | Deprecated: email-tls-cert-key-file. | hidden env=CODER_NOTIFICATIONS_EMAIL_TLS_CERTKEYFILE
## Telemetry | telemetry
telemetry | bool | false | enable | Accepted for compatibility; nothing is ever sent. | env=CODER_TELEMETRY_ENABLE
telemetry-enable | bool | | | Deprecated: telemetry. | env=CODER_TELEMETRY hidden
telemetry-url | url | https://telemetry.coder.com | url | Accepted for compatibility; nothing is ever sent. | hidden
## General |
external-auth-github-default-provider-enable | bool | true | externalAuthGithubDefaultProviderEnable | Without effect: there is no default application.
enable-authz-recordings | bool | false | | Without effect. | hidden
wg-tunnel-host | string | | wgtunnelHost | Without effect: there are no public tunnels. | hidden env=WGTUNNEL_HOST
scim-use-legacy | bool | true | scimUseLegacy | Without effect: there is one SCIM API.
cache-dir | string | ~/.cache/coder | cacheDir | Folder for files that can be made again. | env=CODER_CACHE_DIRECTORY
postgres-url | string | | | URL of a PostgreSQL database; empty starts a built-in one. | env=CODER_PG_CONNECTION_URL secret
postgres-auth | string | password | pgAuth | How to authenticate (password). | env=CODER_PG_AUTH
postgres-conn-max-open | int | 10 | pgConnMaxOpen | Connections kept open. | env=CODER_PG_CONN_MAX_OPEN
postgres-conn-max-idle | string | auto | pgConnMaxIdle | Connections kept idle. | env=CODER_PG_CONN_MAX_IDLE
postgres-bin-dir | string | | | Folder of PostgreSQL programs for the built-in database. | env=CODER_PG_BIN_DIR hidden
ephemeral | bool | | | Keep nothing: the built-in database is removed at exit. | hidden
site-dir | string | | | Folder of another dashboard to serve. | hidden
experiments | list | | experiments | Experiments to turn on.
update-check | bool | false | updateCheck | Look for new releases.
ssh-keygen-algorithm | string | ed25519 | sshKeygenAlgorithm | Kind of users' git keys (ed25519, ecdsa, rsa4096).
swagger-enable | bool | | enableSwagger | Serve the API description at /swagger.
scim-auth-header | string | | | Key of the SCIM API. | secret
external-token-encryption-keys | list | | | Keys (base64) secrets are encrypted with at rest. | secret
terms-of-service-url | string | | termsOfServiceURL | Shown at login.
support-links | struct | | supportLinks | Links in the dashboard's menu.
disable-path-apps | bool | | disablePathApps | Refuse applications by path.
disable-owner-workspace-access | bool | | disableOwnerWorkspaceAccess | Owners cannot enter others' workspaces.
disable-workspace-sharing | bool | | disableWorkspaceSharing | Nobody can share a workspace.
allow-workspace-renames | bool | false | allowWorkspaceRenames | Let users rename workspaces.
browser-only | bool | | browserOnly | Refuse everything but the browser.
agent-fallback-troubleshooting-url | url | https://coder.com/docs/@v2.34.0/admin/templates/troubleshooting | agentFallbackTroubleshootingURL | Help for agents that do not connect.
agent-stats-refresh-interval | duration | 30s | agentStatRefreshInterval | How often agents report. | hidden
autobuild-poll-interval | duration | 1m | autobuildPollInterval | How often schedules are looked at. | hidden
job-hang-detector-interval | duration | 1m | jobHangDetectorInterval | How often hanging jobs are looked for. | hidden
metrics-cache-refresh-interval | duration | 4h | metricsCacheRefreshInterval | How often deployment figures are counted. | hidden
"""

_KINDS: dict[str, Kind] = {
    "string": "string",
    "url": "string",
    "int": "int",
    "bool": "bool",
    "duration": "duration",
    "list": "string-array",
    "struct": "struct",
}


def _default(kind: Kind, text: str) -> Any:
    if kind == "int":
        return int(text or 0)
    if kind == "bool":
        return text == "true"
    if kind == "duration":
        return parse_duration(text) if text else timedelta()
    if kind == "string-array":
        return tuple(part for part in text.split(",") if part)
    return text


def _parse(rows: str) -> tuple[Option, ...]:
    options = []
    group = prefix = ""
    for line in rows.strip().splitlines():
        cells = [cell.strip() for cell in line.lstrip("# ").split("|")]
        if line.startswith("##"):
            group, prefix = cells[0], cells[1] if len(cells) > 1 else ""
            continue
        flag, kind_name, default, yaml, text = (cells + [""] * 5)[:5]
        marks = dict(mark.partition("=")[::2] for mark in (cells[5].split() if len(cells) > 5 else ()))
        kind = _KINDS[kind_name]
        options.append(
            Option(
                name=flag.replace("-", "_"),
                flag=flag,
                env=marks.get("env") or "CODER_" + flag.upper().replace("-", "_"),
                yaml=".".join(part for part in (prefix, yaml) if part) if yaml else "",
                kind=kind,
                default=_default(kind, default),
                help=text,
                group=group,
                short=marks.get("short", ""),
                hidden="hidden" in marks,
                secret="secret" in marks,
            )
        )
    return tuple(options)


OPTIONS: tuple[Option, ...] = _parse(_ROWS)
"""In the order of `coder server --help`."""
