"""Checks across options: settings that contradict each other or cannot be used."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.release.location import checked_address, is_address
from coder.domain.agents.forwarded_families import AGENT_LABELS
from coder.domain.apps.app_addresses import explain_wildcard
from coder.domain.foundation.endpoints import SMTP_PORT, read_endpoint
from coder.domain.foundation.numbers import decimal
from coder.domain.foundation.schedules import ScheduleError, parse_daily
from coder.domain.network.ssh_options import ssh_option
from coder.domain.templates.module_registry import registry_host
from coder.net.masking import masked

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig

MAX_PROCESSES = 64
"""Processes that accept connections; more would only wait for the database's."""
CLIENT_AUTH = ("none", "request", "require-any", "verify-if-given", "require-and-verify")
"""Upstream's words. A certificate, if presented, is always verified: accepting any would only look like a check."""

MAPPINGS = {
    "oidc_group_mapping": "group",
    "oidc_user_role_mapping": "role",
    "oidc_organization_mapping": "id of an organization",
}
"""Settings that map a word of the identity provider to our names: one name, or a list of them."""


def check_config(config: ServerConfig) -> None:
    """Check settings across options. Raises CoderError `bad_option`."""
    if config.tls_enable and (not config.tls_cert_file or len(config.tls_cert_file) != len(config.tls_key_file)):
        raise CoderError(
            "bad_option",
            "TLS is enabled but --tls-cert-file and --tls-key-file do not pair up",
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
            "GitHub login requires a rule for admission",
            "Give either --oauth2-github-allowed-orgs or --oauth2-github-allow-everyone.",
        )
    if not config.http_address and not config.tls_enable:
        raise CoderError(
            "bad_option", "nothing to listen on", "Give --http-address, or --tls-enable with --tls-address."
        )
    if config.access_url and not config.access_url.startswith(("http://", "https://")):
        raise CoderError(
            "bad_option",
            f"--access-url: {masked(config.access_url)!r} is not a URL",
            "Write it with http:// or https:// in front.",
        )
    if is_address(config.release_list):
        try:
            checked_address(config.release_list)
        except CoderError as error:
            raise CoderError("bad_option", f"--release-list: {error.message}", error.hint) from None
    try:
        registry_host(config.template_builder_registry_url)
    except ValueError as error:
        raise CoderError("bad_option", f"--template-builder-registry-url: {error}") from None
    wrong = explain_wildcard(config.wildcard_access_url)
    if wrong:
        raise CoderError(
            "bad_option",
            f"--wildcard-access-url: {config.wildcard_access_url!r} cannot be used: {wrong}",
            "Write it like *.apps.example.com, and let DNS lead every name below it here.",
        )
    if config.wireguard_endpoint:
        check_wireguard_endpoint(config.wireguard_endpoint)
    _check_processes(config)
    for text in config.ssh_config_options:
        check_ssh_option(text)
    for label in config.prometheus_aggregate_agent_stats_by:
        if label not in AGENT_LABELS:
            raise CoderError(
                "bad_option",
                f"--prometheus-aggregate-agent-stats-by: {label!r} is no label of agent statistics",
                f"Use some of {', '.join(AGENT_LABELS)}.",
            )
    for name, target_kind in MAPPINGS.items():
        check_mapping(name, getattr(config, name), target_kind)
    _check_provider(config)
    _check_first_used_later(config)


def _check_provider(config: ServerConfig) -> None:
    """Check that sign-in with OpenID Connect has its parts: half of them would show a button that fails."""
    proof = config.oidc_client_secret or config.oidc_client_key_file
    if proof and not config.oidc_client_id:
        raise CoderError("bad_option", "OIDC client ID must be set!", "Give --oidc-client-id (CODER_OIDC_CLIENT_ID).")
    if config.oidc_client_id and not config.oidc_issuer_url:
        raise CoderError(
            "bad_option", "OIDC issuer URL must be set!", "Give --oidc-issuer-url (CODER_OIDC_ISSUER_URL)."
        )
    if config.oidc_client_id and not re.match(r"https?://[^/\s]", config.oidc_issuer_url):
        raise CoderError(
            "bad_option",
            f"--oidc-issuer-url: {masked(config.oidc_issuer_url)!r} is not a URL",
            "Write it as the provider does, such as https://login.example.com/realms/coder.",
        )


def _check_first_used_later(config: ServerConfig) -> None:
    """Check values that are first used hours after the start: by a mail, a workspace's deadline, a client's STUN."""
    for flag, value, fault_of, example in (
        ("email-smarthost", config.email_smarthost, _endpoint_fault, "smtp.example.com:587"),
        ("stun-address", config.stun_address, _listening_fault, "0.0.0.0:3478"),
    ):
        if value and (fault := fault_of(value)):
            raise CoderError(
                "bad_option", f"--{flag}: {value!r} is not host:port: {fault}", f"Write it like {example}."
            )
    if config.default_quiet_hours_schedule:
        try:
            parse_daily(config.default_quiet_hours_schedule, stored=True)
        except ScheduleError as error:
            raise CoderError(
                "bad_option",
                f"--default-quiet-hours-schedule: {config.default_quiet_hours_schedule!r} cannot be used: {error}",
                'Write a daily time with its zone, such as "CRON_TZ=Europe/Berlin 0 2 * * *".',
            ) from None


def _endpoint_fault(text: str) -> str:
    """Return the fault of a host with or without a port, "" for none."""
    try:
        read_endpoint(text, default_port=SMTP_PORT)
    except ValueError as error:
        return str(error)
    return ""


def _listening_fault(text: str) -> str:
    """Return the fault of an address to listen on, "" for none: its host may be empty, and its port may be 0."""
    host, colon, digits = text.rpartition(":")
    port = decimal(digits)
    if not colon or port is None or port > 0xFFFF:
        return "its port is not a number from 0 to 65535"
    return _endpoint_fault(f"{host}:1") if host else ""


def _check_processes(config: ServerConfig) -> None:
    """Check the numbers of processes, provisioners and database connections, and the cookies' policy."""
    if config.provisioner_daemons < 0:
        raise CoderError(
            "bad_option",
            f"--provisioner-daemons={config.provisioner_daemons} is negative",
            "Use 0 for a server without built-in provisioners.",
        )
    if not 1 <= config.processes <= MAX_PROCESSES:
        raise CoderError("bad_option", f"--processes must be between 1 and {MAX_PROCESSES}")
    if config.postgres_conn_max_open < 1:
        raise CoderError("bad_option", "--postgres-conn-max-open must be at least 1")
    idle = idle_connections(config.postgres_conn_max_idle)
    if idle is not None and idle > config.postgres_conn_max_open:
        raise CoderError(
            "bad_option",
            f"--postgres-conn-max-idle={idle} is more than --postgres-conn-max-open={config.postgres_conn_max_open}",
            "Idle connections count as open.",
        )
    if config.samesite_auth_cookie not in {"lax", "none"}:
        raise CoderError("bad_option", "--samesite-auth-cookie must be lax or none")


def check_mapping(name: str, value: Json, target_kind: str) -> None:
    """Check a mapping at the start instead of at the first login. Raises CoderError `bad_option`."""
    try:
        result: Json = (json.loads(value) if isinstance(value, str) and value else value) or {}
        if not isinstance(result, Mapping):
            raise TypeError
        for target in result.values():
            if not isinstance(target, str | list | None):
                raise TypeError
            for item in [target] if isinstance(target, str) else target or []:  # null counts as empty
                (UUID if name == "oidc_organization_mapping" else str.strip)(item)
    except (ValueError, TypeError, AttributeError):
        raise CoderError(
            "bad_option",
            f"--{name.replace('_', '-')} does not map each word to a {target_kind}: {value!r}",
            f'Write it as JSON, such as {{"word at the provider": ["{target_kind}"]}}.',
        ) from None


def check_ssh_option(text: str) -> None:
    """Raise CoderError `bad_option` for an invalid one. Every client requests them before it writes its
    configuration."""
    try:
        ssh_option(text)
    except ValueError:
        raise CoderError(
            "bad_option",
            f"--ssh-config-options: {text!r} is not a setting of an SSH client",
            "Write it as name=value, such as ServerAliveInterval=30.",
        ) from None


def check_links(links: Json) -> None:
    """Raise CoderError `bad_option` for invalid links. The sign-in page shows them."""
    wrong = links is not None and not isinstance(links, list)
    for link in links if isinstance(links, list) else ():
        wrong = wrong or not isinstance(link, dict) or not all(isinstance(link.get(name), str) for name in _LINK)
        wrong = wrong or not isinstance(link.get("icon", ""), str)
    if wrong:
        raise CoderError(
            "bad_option",
            "--support-links is not a list of links",
            'Write it as JSON or YAML, such as [{"name": "Wiki", "target": "https://wiki.example.com", "icon": "docs"}].',
        )


_LINK = ("name", "target")


def check_parameters(found: Json) -> None:
    """Raise CoderError `bad_option` for invalid ones, with which sign-in would fail."""
    if not isinstance(found or {}, dict):
        raise CoderError(
            "bad_option",
            "--oidc-auth-url-params is not an object of parameters",
            'Write it as JSON, such as {"access_type": "offline"}.',
        )


def idle_connections(text: str) -> int | None:
    """Return the number; None for `auto`. Raises CoderError `bad_option`."""
    if text == "auto":
        return None
    if not (text.isascii() and text.isdigit()):
        raise CoderError("bad_option", f'--postgres-conn-max-idle: {text!r} is neither a number nor "auto"')
    return int(text)


def check_wireguard_endpoint(text: str) -> None:
    """Raise CoderError `bad_option` for an invalid one. A client receives it once, with a private key that is never
    shown again."""
    try:
        read_endpoint(text)
    except ValueError as error:
        raise CoderError(
            "bad_option",
            f"WireGuard clients cannot connect to {text!r}: {error}",
            "Give --wireguard-endpoint as host:port, such as vpn.example.com:51820 or [2001:db8::1]:51820.",
        ) from None
