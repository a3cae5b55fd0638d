"""Settings without effect, each with the reason. They are accepted so that a deployment's environment can stay
unchanged."""

from __future__ import annotations

from coder.base.config import Resolved
from coder.coderd.config.options import OPTIONS

WITHOUT_EFFECT = {
    "telemetry": "this server sends no reports, whatever the setting",
    "telemetry_enable": "a former name of --telemetry",
    "telemetry_url": "this server sends no reports",
    "cluster_host": "replicas find each other by the database",
    "oauth2_github_default_provider_enable": "there is no default application to offer",
    "external_auth_github_default_provider_enable": "there is no default application to offer",
    "oidc_repair_links": "links are by issuer and subject from the start, so there is nothing to repair",
    "provisioner_daemon_poll_interval": "provisioners are notified and do not poll",
    "provisioner_daemon_poll_jitter": "provisioners are notified and do not poll",
    "boundary_log_retention": "no boundary logs are kept",
    "notifications_lease_count": "messages are leased one by one, so that one that hangs keeps no other waiting",
    "notifications_store_sync_buffer_size": "results are written immediately",
    "notifications_store_sync_interval": "results are written immediately",
}
"""Reasons by attribute. A test finds a difference for every other setting."""
HARMLESS = frozenset(
    {
        "telemetry",
        "telemetry_enable",
        "telemetry_url",
        "oauth2_github_default_provider_enable",
        "external_auth_github_default_provider_enable",
    }
)
"""Settings that ask for less than we do anyway: no warning is logged."""


def ignored_settings(resolved: Resolved) -> list[str]:
    """Return the flags of settings that were set but have no effect, for a warning at the start."""
    return [
        f"--{option.flag}"
        for option in OPTIONS
        if option.name in WITHOUT_EFFECT
        and option.name not in HARMLESS
        and resolved.sources[option.name] != "default"
        and resolved[option.name] != option.default
    ]
