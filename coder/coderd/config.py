"""The server's settings: one frozen dataclass, built from `coder.base.config` options.

Attributes are the settings code of this server reads, if only to show them; all others of `options.OPTIONS` stay
readable through `resolved`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from coder.base.config import Inputs, Resolved, resolve
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.options import OPTIONS
from coder.domain.app_addresses import explain_wildcard
from coder.domain.endpoints import read_endpoint
from coder.domain.external_providers import Provider, ProviderProblem, read_providers


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything `run_server` needs to know. Defaults are those of a bare `coder server`."""

    data_dir: Path = Path("~/.config/coderv2")
    "Folder of the built-in database and of everything else the server keeps (`--global-config`)."
    http_address: str = "127.0.0.1:3000"
    access_url: str = ""
    "Empty: the first listener's URL."
    wildcard_access_url: str = ""
    docs_url: str = "https://coder.com/docs/@v2.34.0"
    redirect_to_access_url: bool = False
    proxy_trusted_headers: tuple[str, ...] = ()
    proxy_trusted_origins: tuple[str, ...] = ()
    secure_auth_cookie: bool = False
    samesite_auth_cookie: str = "lax"
    tls_enable: bool = False
    tls_address: str = "127.0.0.1:3443"
    tls_cert_file: tuple[str, ...] = ()
    tls_key_file: tuple[str, ...] = ()
    tls_min_version: str = "tls12"
    tls_client_auth: str = "none"
    tls_client_ca_file: str = ""
    strict_transport_security: int = 0
    strict_transport_security_options: tuple[str, ...] = ()
    additional_csp_policy: tuple[str, ...] = ()
    disable_password_auth: bool = False
    disable_session_expiry_refresh: bool = False
    session_duration: timedelta = timedelta(hours=24)
    max_token_lifetime: timedelta = timedelta(hours=876600)
    max_admin_token_lifetime: timedelta = timedelta(hours=168)
    default_token_lifetime: timedelta = timedelta(hours=168)
    api_rate_limit: int = 512
    dangerous_disable_rate_limits: bool = False
    dangerous_allow_cors_requests: bool = False
    dangerous_allow_path_app_sharing: bool = False
    dangerous_allow_path_app_site_owner_access: bool = False
    proxy_health_interval: timedelta = timedelta(minutes=1)
    derp_server_enable: bool = True
    derp_server_region_id: int = 999
    derp_server_region_code: str = "coder"
    derp_server_region_name: str = "Coder Embedded Relay"
    derp_server_relay_url: str = ""
    derp_server_stun_addresses: tuple[str, ...] = ()
    derp_force_websockets: bool = False
    derp_config_url: str = ""
    derp_config_path: str = ""
    block_direct_connections: bool = False
    derp_server_bytes_per_second: int = 0
    stun_address: str = ""
    wireguard_address: str = ""
    wireguard_endpoint: str = ""
    log_human: str = "/dev/stderr"
    log_json: str = ""
    log_filter: tuple[str, ...] = ()
    verbose: bool = False
    provisioner_daemons: int = 3
    provisioner_types: tuple[str, ...] = ("terraform",)
    provisioner_force_cancel_interval: timedelta = timedelta(minutes=10)
    provisioner_job_timeout: timedelta = timedelta(hours=4)
    provisioner_daemon_psk: Secret = field(default_factory=lambda: Secret(""))
    provisioner_strict_tags: bool = False
    terraform_path: str = "terraform"
    terraform_provider: str = "builtin"
    job_hang_detector_interval: timedelta = timedelta(minutes=1)
    metrics_cache_refresh_interval: timedelta = timedelta(hours=4)
    autobuild_poll_interval: timedelta = timedelta(minutes=1)
    notifications_method: str = "smtp"
    notifications_webhook_endpoint: str = ""
    notifications_inbox_enabled: bool = True
    notifications_max_send_attempts: int = 5
    notifications_retry_interval: timedelta = timedelta(minutes=5)
    notifications_dispatch_timeout: timedelta = timedelta(minutes=1)
    email_from: str = ""
    email_smarthost: str = ""
    email_hello: str = "localhost"
    email_force_tls: bool = False
    email_tls_starttls: bool = False
    email_tls_skip_verify: bool = False
    email_tls_ca_cert_file: str = ""
    email_tls_server_name: str = ""
    email_tls_cert_file: str = ""
    email_tls_cert_key_file: str = ""
    email_auth_username: str = ""
    email_auth_password: Secret = field(default_factory=lambda: Secret(""))
    email_auth_password_file: str = ""
    audit_logs_retention: timedelta = timedelta()
    connection_logs_retention: timedelta = timedelta()
    api_keys_retention: timedelta = timedelta(days=7)
    workspace_agent_logs_retention: timedelta = timedelta(days=7)
    trace: bool = False
    trace_logs: bool = False
    trace_honeycomb_api_key: Secret = field(default_factory=lambda: Secret(""))
    prometheus_enable: bool = False
    prometheus_address: str = "127.0.0.1:2112"
    prometheus_collect_agent_stats: bool = False
    health_check_refresh: timedelta = timedelta(minutes=10)
    health_check_threshold_database: timedelta = timedelta(milliseconds=15)
    stats_collection_usage_stats_enable: bool = True
    workspace_prebuilds_reconciliation_interval: timedelta = timedelta(minutes=1)
    cache_dir: Path = Path("~/.cache/coder")
    postgres_url: Secret = field(default_factory=lambda: Secret(""))
    postgres_conn_max_open: int = 10
    postgres_bin_dir: str = ""
    ephemeral: bool = False
    site_dir: str = ""
    experiments: tuple[str, ...] = ()
    ssh_hostname_prefix: str = "coder."
    workspace_hostname_suffix: str = "coder"
    ssh_config_options: tuple[str, ...] = ()
    ssh_keygen_algorithm: str = "ed25519"
    cli_upgrade_message: str = ""
    terms_of_service_url: str = ""
    swagger_enable: bool = False
    disable_path_apps: bool = False
    disable_owner_workspace_access: bool = False
    disable_workspace_sharing: bool = False
    allow_workspace_renames: bool = False
    enable_terraform_debug_mode: bool = False
    allow_custom_quiet_hours: bool = True
    default_quiet_hours_schedule: str = "CRON_TZ=UTC 0 0 * * *"
    agent_stats_refresh_interval: timedelta = timedelta(seconds=30)
    agent_fallback_troubleshooting_url: str = ""
    update_check: bool = False
    web_terminal_renderer: str = "canvas"
    oidc_sign_in_text: str = "OpenID Connect"
    oidc_icon_url: str = ""
    oidc_redirect_url: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: Secret = field(default_factory=lambda: Secret(""))
    oidc_issuer_url: str = ""
    oidc_scopes: tuple[str, ...] = ("openid", "profile", "email")
    oidc_allow_signups: bool = True
    oidc_signups_disabled_text: str = ""
    oidc_email_domain: tuple[str, ...] = ()
    oidc_ignore_email_verified: bool = False
    oidc_ignore_userinfo: bool = False
    aws_identity_certificates: str = ""
    oidc_username_field: str = "preferred_username"
    oidc_name_field: str = "name"
    oidc_email_field: str = "email"
    oidc_auth_url_params: Any = '{"access_type": "offline"}'
    oidc_group_field: str = ""
    oidc_group_mapping: Any = "{}"
    oidc_group_auto_create: bool = False
    oidc_group_regex_filter: str = ".*"
    oidc_allowed_groups: tuple[str, ...] = ()
    oidc_user_role_field: str = ""
    oidc_user_role_mapping: Any = "{}"
    oidc_user_role_default: tuple[str, ...] = ()
    dangerous_oidc_skip_issuer_checks: bool = False
    external_token_encryption_keys: tuple[str, ...] = ()
    scim_auth_header: Secret = field(default_factory=lambda: Secret(""))
    oauth2_github_client_id: str = ""
    oauth2_github_client_secret: Secret = field(default_factory=lambda: Secret(""))
    oauth2_github_device_flow: bool = False
    oauth2_github_allowed_orgs: tuple[str, ...] = ()
    oauth2_github_allowed_teams: tuple[str, ...] = ()
    oauth2_github_allow_signups: bool = False
    oauth2_github_allow_everyone: bool = False
    oauth2_github_enterprise_base_url: str = ""
    external_auth_providers: tuple[Provider, ...] = ()
    "From `CODER_EXTERNAL_AUTH_<n>_…` and the YAML file's `externalAuthProviders`."
    resolved: Resolved | None = None
    "Every option's value and source; None when the config was built by hand (tests)."

    @property
    def data_path(self) -> Path:
        """`data_dir` with `~` expanded."""
        return self.data_dir.expanduser()


ONLY_SHOWN = frozenset(
    {
        "update_check",
        "web_terminal_renderer",
    }
)
"""Attributes that nothing acts on yet; a test compares this with the code."""
_HARMLESS = frozenset({"telemetry", "telemetry_enable", "telemetry_url"})
"Settings whose effect would be to do less than we do anyway."


_FORMER = {"address": "http_address"} | {
    f"notifications_{option.name}": option.name for option in OPTIONS if option.name.startswith("email_")
}
"""Deprecated names of settings; what is given under one of them counts, as upstream has it."""
_FORMER_OF = {name: former for former, name in _FORMER.items()}


def effective_name(resolved: Resolved, name: str) -> str:
    """The option whose value counts for a setting: its former name when that was given."""
    former = _FORMER_OF.get(name)
    return former if former and resolved.sources[former] != "default" else name


def ignored_settings(resolved: Resolved) -> list[str]:
    """Flags of settings that somebody gave and nothing acts on, so that a server can say so at its start."""
    acted_on = {item.name for item in fields(ServerConfig)} - ONLY_SHOWN | _HARMLESS
    acted_on |= {former for former, name in _FORMER.items() if name in acted_on}
    return [
        f"--{option.flag}"
        for option in OPTIONS
        if option.name not in acted_on
        and resolved.sources[option.name] != "default"
        and resolved[option.name] != option.default
    ]


SECRETS = frozenset(
    {
        "postgres_url",
        "provisioner_daemon_psk",
        "email_auth_password",
        "oidc_client_secret",
        "oauth2_github_client_secret",
        "scim_auth_header",
        "trace_honeycomb_api_key",
    }
)
"""Attributes that are `Secret`."""


def server_config(inputs: Inputs, data_dir: Path) -> ServerConfig:
    """Reads all options. Raises CoderError `bad_option`."""
    resolved = resolve(OPTIONS, inputs)
    names = {item.name for item in fields(ServerConfig)} - {"data_dir", "resolved"}
    values: dict[str, Any] = {}
    for option in OPTIONS:
        if option.name not in names:
            continue
        value = resolved[effective_name(resolved, option.name)]
        if option.name == "cache_dir":
            value = Path(value)
        elif option.name in SECRETS:
            value = Secret(value)
        values[option.name] = value
    try:
        providers = read_providers(inputs.env, inputs.file.get("externalAuthProviders"))
    except ProviderProblem as error:
        raise CoderError("bad_option", str(error), "See CODER_EXTERNAL_AUTH_0_ID and its kin.") from error
    config = ServerConfig(data_dir=data_dir, resolved=resolved, external_auth_providers=providers, **values)
    check_config(config)
    return config


CLIENT_AUTH = ("none", "request", "require-any", "verify-if-given", "require-and-verify")
"""Upstream's words. A certificate that is shown is always verified: accepting any would only look like a check."""


def check_config(config: ServerConfig) -> None:
    """What the values of single options do not tell. Raises CoderError `bad_option`."""
    if config.tls_enable and (not config.tls_cert_file or len(config.tls_cert_file) != len(config.tls_key_file)):
        raise CoderError(
            "bad_option",
            "TLS is on but --tls-cert-file and --tls-key-file do not pair up",
            "Give one key file for each certificate file.",
        )
    if config.tls_client_auth not in CLIENT_AUTH:
        raise CoderError("bad_option", f"--tls-client-auth must be one of {', '.join(CLIENT_AUTH)}")
    if config.tls_enable and config.tls_client_auth not in {"none", "request"} and not config.tls_client_ca_file:
        raise CoderError(
            "bad_option",
            f"--tls-client-auth={config.tls_client_auth} has nothing to check certificates against",
            "Give the authority of the clients by --tls-client-ca-file.",
        )
    if config.oauth2_github_client_id and config.oauth2_github_allow_everyone == bool(
        config.oauth2_github_allowed_orgs
    ):
        raise CoderError(
            "bad_option",
            "GitHub login needs to know who may come in",
            "Give either --oauth2-github-allowed-orgs or --oauth2-github-allow-everyone.",
        )
    if not config.http_address and not config.tls_enable:
        raise CoderError(
            "bad_option", "nothing to listen on", "Give --http-address, or --tls-enable with --tls-address."
        )
    if config.access_url and not config.access_url.startswith(("http://", "https://")):
        raise CoderError(
            "bad_option",
            f"--access-url: {config.access_url!r} is not a URL",
            "Write it with http:// or https:// in front.",
        )
    wrong = explain_wildcard(config.wildcard_access_url)
    if wrong:
        raise CoderError(
            "bad_option",
            f"--wildcard-access-url: {config.wildcard_access_url!r} cannot be used: {wrong}",
            "Write it like *.apps.example.com, and let DNS lead every name below it here.",
        )
    if config.wireguard_endpoint:
        check_wireguard_endpoint(config.wireguard_endpoint)
    if config.samesite_auth_cookie not in {"lax", "none"}:
        raise CoderError("bad_option", "--samesite-auth-cookie must be lax or none")


def check_wireguard_endpoint(text: str) -> None:
    """Raises CoderError `bad_option`. A client is told it once, beside a private key that is shown once."""
    try:
        read_endpoint(text)
    except ValueError as error:
        raise CoderError(
            "bad_option",
            f"WireGuard clients cannot be told to connect to {text!r}: {error}",
            "Give --wireguard-endpoint as host:port, such as vpn.example.com:51820 or [2001:db8::1]:51820.",
        ) from None


def struct_value(text: Any) -> Any:
    """A struct option's value: JSON text, or what the YAML file held."""
    return json.loads(text) if isinstance(text, str) and text else text


def known_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that `coder server` reads."""
    names = {option.env for option in OPTIONS}
    return {name: value for name, value in environ.items() if name in names or name.startswith("CODER_EXTERNAL_AUTH_")}
