"""The server's settings: one frozen dataclass a concern, and `ServerConfig`, which is all of them.

`ctx.config.tls_enable` is one attribute away, and a function that needs one concern asks for that: a `ServerConfig` is
a `TlsSettings`. Attributes are the settings code of this server reads; the option table is made from them (`options`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from coder.base.config import Resolved
from coder.base.secret import Secret
from coder.coderd.config.introspection import (
    HealthCheckSettings,
    LoggingSettings,
    PprofSettings,
    PrometheusSettings,
    TracingSettings,
    UsageSettings,
)
from coder.coderd.config.login import ExternalAuthSettings, GithubSettings, ScimSettings, SessionSettings
from coder.coderd.config.networking import AddressSettings, CookieSettings, HttpSettings, TlsSettings
from coder.coderd.config.notifications import EmailSettings, NotificationSettings
from coder.coderd.config.oidc import OidcSettings
from coder.coderd.config.options import FORMER
from coder.coderd.config.overlay import DerpSettings, WireguardSettings
from coder.coderd.config.provisioning import PrebuildSettings, ProvisionerSettings
from coder.coderd.config.site import ClientSettings, SiteSettings
from coder.coderd.config.storage import PostgresSettings, RetentionSettings
from coder.coderd.config.workspaces import QuietHoursSettings, WorkspaceSettings
from coder.domain.login.external_providers import ExternalProvider


@dataclass(frozen=True, kw_only=True)
class ServerConfig(
    AddressSettings,
    CookieSettings,
    HttpSettings,
    TlsSettings,
    DerpSettings,
    WireguardSettings,
    HealthCheckSettings,
    LoggingSettings,
    PrometheusSettings,
    TracingSettings,
    PprofSettings,
    UsageSettings,
    SessionSettings,
    GithubSettings,
    OidcSettings,
    ExternalAuthSettings,
    ScimSettings,
    ProvisionerSettings,
    PrebuildSettings,
    RetentionSettings,
    QuietHoursSettings,
    ClientSettings,
    NotificationSettings,
    EmailSettings,
    PostgresSettings,
    WorkspaceSettings,
    SiteSettings,
):
    """Everything `run_server` needs to know. Defaults are those of a bare `coder server`."""

    data_dir: Path = Path("~/.config/coderv2")
    "Folder of the built-in database and of everything else the server keeps (`--global-config`)."
    external_auth_providers: tuple[ExternalProvider, ...] = ()
    "From `CODER_EXTERNAL_AUTH_<n>_…`, `--external-auth-providers` or the YAML file's list of that name."
    resolved: Resolved | None = None
    "Every option's value and source; None when the config was built by hand (tests)."

    @property
    def data_path(self) -> Path:
        """`data_dir` with `~` expanded."""
        return self.data_dir.expanduser()


ATTRIBUTES = {item.name: str(item.type) for item in fields(ServerConfig) if "setting" in item.metadata}
SECRETS = frozenset(name for name, kind in ATTRIBUTES.items() if kind == "Secret")
"""Attributes that are `Secret`."""
WRAPS = {"Secret": Secret, "Path": Path}
_FORMER_OF = {name: former for former, name in FORMER.items()}


def effective_name(resolved: Resolved, name: str) -> str:
    """The option whose value counts for a setting: its former name when that was given."""
    former = _FORMER_OF.get(name)
    return former if former and resolved.sources[former] != "default" else name


def struct_value(text: Any) -> Any:
    """A struct option's value: JSON or YAML text, or what the YAML file held. Raises ValueError."""
    if not isinstance(text, str) or not text:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return _yaml_value(text)


def _yaml_value(text: str) -> object:
    import yaml  # who writes JSON does not wait for it

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError("neither JSON nor YAML") from error
