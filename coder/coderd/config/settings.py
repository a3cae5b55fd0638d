"""The server's settings: one frozen dataclass per concern, and `ServerConfig`, which is all of them.

`ctx.config.tls_enable` is one attribute away, and a function that needs one concern takes that: a `ServerConfig` is a
`TlsSettings`. Code of this server reads attributes; the option table is built from them (`options`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path

from coder.base.config import Resolved
from coder.base.json_types import Json, as_list, as_object
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
from coder.coderd.config.site import ClientSettings, SiteSettings, TemplateBuilderSettings
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
    TemplateBuilderSettings,
    SiteSettings,
):
    """All settings of `run_server`. Defaults are those of a bare `coder server`."""

    data_dir: Path = Path("~/.config/coderv2")
    """Folder of the built-in database and of all other stored files (`--global-config`)."""
    external_auth_providers: tuple[ExternalProvider, ...] = ()
    """Providers from `CODER_EXTERNAL_AUTH_<n>_…`, `--external-auth-providers` or the YAML file's list of that name."""
    resolved: Resolved | None = None
    """Value and source of every option; None when the config was built by hand (tests)."""

    @property
    def data_path(self) -> Path:
        """Return `data_dir` with `~` expanded."""
        return self.data_dir.expanduser()


ATTRIBUTES = {item.name: str(item.type) for item in fields(ServerConfig) if "setting" in item.metadata}
SECRETS = frozenset(name for name, kind in ATTRIBUTES.items() if kind == "Secret")
"""Attributes that are `Secret`."""
WRAPS = {"Secret": Secret, "Path": Path}
_FORMER_OF = {name: former for former, name in FORMER.items()}


def effective_name(resolved: Resolved, name: str) -> str:
    """Return the option whose value counts for a setting: its former name if that was set."""
    former = _FORMER_OF.get(name)
    return former if former and resolved.sources[former] != "default" else name


def struct_value(text: Json | timedelta) -> Json:
    """Return a structured option's value: JSON or YAML text, or the YAML file's value. Scalars of YAML are texts.

    Raises ValueError.
    """
    if isinstance(text, timedelta):
        raise ValueError("a duration has no structure")
    if not isinstance(text, str) or not text:
        return text
    try:
        value: Json = json.loads(text)
    except ValueError:
        return _yaml_value(text)
    return value


def struct_mapping(text: Json) -> dict[str, list[str]]:
    """Return a structured option that maps words to one or several names (`check_mapping`), without those it maps to
    null."""
    mapping = as_object(struct_value(text))
    return {
        word: [names] if isinstance(names, str) else [str(name) for name in as_list(names)]
        for word, names in mapping.items()
        if names is not None
    }


def _yaml_value(text: str) -> Json:
    from coder.base.yaml_documents import YamlError, read_document  # JSON does not need to wait for this import

    try:
        value: Json = read_document(text)
    except YamlError as error:
        raise ValueError("neither JSON nor YAML") from error
    return value
