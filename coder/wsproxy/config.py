"""Settings of a workspace proxy: three of its own, and those of the server that require no database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from coder.base.config import Inputs, Option, resolve
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.config.checks import check_config
from coder.coderd.config.options import OPTIONS
from coder.coderd.config.settings import ServerConfig

_GROUP = "Workspace Proxy"
OWN_OPTIONS = (
    Option(
        "primary_access_url",
        "primary-access-url",
        "CODER_PRIMARY_ACCESS_URL",
        kind="url",
        help="The access URL of the server this proxy belongs to.",
        group=_GROUP,
    ),
    Option(
        "proxy_session_token",
        "proxy-session-token",
        "CODER_PROXY_SESSION_TOKEN",
        help="The proxy's token, as `coder workspace-proxy create` prints it.",
        group=_GROUP,
        secret=True,
    ),
    Option(
        "derp_only",
        "derp-only",
        "CODER_PROXY_DERP_ONLY",
        kind="bool",
        default=False,
        help="Relay only: serve no applications and no terminals.",
        group=_GROUP,
    ),
)

SHARED = frozenset(
    {
        "access_url",
        "wildcard_access_url",
        "proxy_trusted_headers",
        "proxy_trusted_origins",
        "secure_auth_cookie",
        "samesite_auth_cookie",
        "host_prefix_cookie",
        "http_address",
        "disable_path_apps",
        "api_rate_limit",
        "dangerous_disable_rate_limits",
        "session_duration",
        "tls_enable",
        "tls_address",
        "tls_cert_file",
        "tls_key_file",
        "tls_client_auth",
        "tls_client_ca_file",
        "tls_min_version",
        "tls_ciphers",
        "tls_allow_insecure_ciphers",
        "strict_transport_security",
        "strict_transport_security_options",
        "derp_server_enable",
        "derp_server_relay_url",
        "derp_server_bytes_per_second",
        "block_direct_connections",
        "log_human",
        "log_json",
        "log_stackdriver",
        "log_filter",
        "prometheus_enable",
        "prometheus_address",
    }
)
"""Settings of the server that a proxy supports."""

WITHOUT_EFFECT = {
    "docs_url": "pages with documentation links belong to the server",
    "dangerous_allow_cors_requests": "a proxy has no API for pages of other origins",
    "disable_owner_workspace_access": "the server decides who can connect to a workspace",
    "experiments": "experiments belong to the server",
    "pprof_enable": "the server has profiles at /api/v2/debug/pprof",
    "pprof_address": "the server has profiles at /api/v2/debug/pprof",
    "tls_client_cert_file": "the proxy authenticates with its token, not with a certificate",
    "tls_client_key_file": "the proxy authenticates with its token, not with a certificate",
    "tls_redirect_http_to_https": "a listener without TLS does not redirect",
    "trace": "requests at proxies are not traced; --prometheus-enable counts them",
    "trace_logs": "requests at proxies are not traced",
    "trace_honeycomb_api_key": "requests at proxies are not traced",
    "trace_datadog": "it belongs to another language's runtime",
}
"""Reasons of settings without effect, accepted from the environment so that server and proxies can share one file."""

PROXY_OPTIONS = (
    *OWN_OPTIONS,
    *(option for option in OPTIONS if option.name in SHARED or option.name in WITHOUT_EFFECT),
)


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """Configuration for `run_proxy`."""

    primary_access_url: str
    "Access URL of the server, without a trailing slash."
    token: Secret
    server: ServerConfig
    "Settings shared with a server: listeners, addresses, cookies, relay."
    derp_only: bool = False


def proxy_config(inputs: Inputs) -> ProxyConfig:
    """Return the configuration from all options. Raise CoderError `bad_option` for an invalid one."""
    resolved = resolve(PROXY_OPTIONS, inputs)
    values: dict[str, Any] = {name: resolved[name] for name in SHARED}
    server = ServerConfig(**values)
    check_config(server)
    if resolved.flag("derp_only") and not server.derp_server_enable:
        raise CoderError("bad_option", "--derp-only with --derp-server-enable=false leaves nothing to do")
    return ProxyConfig(
        primary_access_url=_primary(resolved.text("primary_access_url")),
        token=_token(resolved.text("proxy_session_token")),
        server=server,
        derp_only=resolved.flag("derp_only"),
    )


def _primary(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CoderError(
            "bad_option",
            "--primary-access-url: " + (f"{text!r} is not a URL" if text else "it is missing"),
            "Set the access URL of this proxy's server, with http:// or https://.",
        )
    return text.rstrip("/")


def _token(text: str) -> Secret:
    identity, _, secret = text.strip().partition(":")
    try:
        UUID(identity)
    except ValueError:
        secret = ""
    if not secret:
        raise CoderError(
            "bad_option",
            "--proxy-session-token: " + ("it is not a token of a workspace proxy" if text else "it is missing"),
            "`coder workspace-proxy create` prints one, `coder workspace-proxy regenerate-token NAME` a new one. "
            "It is written ID:SECRET.",
        )
    return Secret(text.strip())
