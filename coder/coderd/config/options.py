"""The option table of `coder server`, built from the settings' own declarations.

It also holds the former names of settings, and the sources of settings. Names, kinds and defaults are upstream v2.34's;
options of unsupported parts (AI gateway, chats) are left out with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from coder.base.json_types import Json
from coder.coderd.config.groups import CONFIG, EMAIL, GENERAL, NETWORKING, NOTIFICATIONS, TELEMETRY
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
from coder.coderd.config.overlay import DerpSettings, WireguardSettings
from coder.coderd.config.provisioning import PrebuildSettings, ProvisionerSettings
from coder.coderd.config.setting import ServerOption, concern, options_of, setting
from coder.coderd.config.site import ClientSettings, SiteSettings, TemplateBuilderSettings
from coder.coderd.config.storage import PostgresSettings, RetentionSettings
from coder.coderd.config.workspaces import QuietHoursSettings, WorkspaceSettings

CONCERNS = (
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
)
"""Frozen dataclasses, one per concern, in the order of the help; `ServerConfig` is all of them."""


@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class _Sources:
    """Sources and targets of settings, and former names: options without an attribute of `ServerConfig`."""

    config: str = setting(
        "",
        "Config Path",
        "YAML file that settings are read from; flags and variables take precedence.",
        env="CODER_CONFIG_PATH",
        group=CONFIG,
        short="c",
    )
    write_config: bool = setting(
        False, "Write Config", "Print all settings as YAML, for --config, and exit.", group=CONFIG, proxies=True
    )
    external_auth_providers: Json = setting(
        "",
        "External Auth Providers",
        "External providers that workspaces need, as a JSON list; CODER_EXTERNAL_AUTH_0_ID and its siblings take precedence.",
        yaml="externalAuthProviders",
        hidden=True,
    )
    address: str = setting(
        "",
        "Address",
        "Deprecated: http-address or tls-address.",
        group=NETWORKING,
        path="address",
        short="a",
        hidden=True,
        proxies=True,
        instead=("http-address", "tls-address"),
    )
    telemetry_enable: bool = setting(
        False,
        "Telemetry (backwards compatibility)",
        "Deprecated: telemetry.",
        env="CODER_TELEMETRY",
        group=TELEMETRY,
        hidden=True,
        instead=("telemetry",),
    )


_NO_VARIABLE = {"write_config", "external_auth_providers"}


def _former_email(option: ServerOption) -> ServerOption:
    """Return the former mail option, below the notifications."""
    below = replace(EMAIL, parent=NOTIFICATIONS)
    inner = option.group_of or EMAIL
    whole = below if inner is EMAIL else replace(inner, parent=below)
    return replace(
        option,
        name=f"notifications_{option.name}",
        flag=f"notifications-{option.flag}",
        env=option.env.replace("CODER_", "CODER_NOTIFICATIONS_", 1),
        yaml=f"{NOTIFICATIONS.yaml}.{option.yaml}" if option.yaml else "",
        help=f"Deprecated: {option.flag}.",
        group=" / ".join(part.name for part in whole.chain()),
        title=f"Notifications: {option.title}",
        group_of=whole,
        instead=(option.flag,),
        shown_default="",
        path="",
    )


OPTIONS: tuple[ServerOption, ...] = (
    *options_of(*CONCERNS),
    *(_former_email(option) for option in options_of(EmailSettings)),
    *(replace(option, env="") if option.name in _NO_VARIABLE else option for option in options_of(_Sources)),
)
"""Options in the order of `coder server --help`."""

FORMER = {
    "address": "http_address",
    "telemetry_enable": "telemetry",
    **{f"notifications_{option.name}": option.name for option in options_of(EmailSettings)},
}
"""Deprecated names of settings; a value under a deprecated name counts, as in upstream."""
