"""Data of the whole deployment: features, appearance, configuration, regions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coder.api.base import codec
from coder.api.base.refusals import Forbidden, Invalid
from coder.api.site.deployment import (
    AppearanceConfig,
    BannerConfig,
    Entitlements,
    Feature,
    LinkConfig,
    SSHConfigResponse,
    UpdateAppearanceConfig,
)
from coder.base.version import BUILD_VERSION
from coder.coderd.config.settings import struct_value
from coder.coderd.services.access.authorization import may
from coder.coderd.services.foundation.documentation import documentation_url
from coder.coderd.store.people import users as user_store
from coder.coderd.store.site import site_settings
from coder.domain.access.policy import Class, Subject
from coder.domain.network.ssh_options import ssh_option

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

FEATURES = (
    "access_control advanced_template_scheduling agent_runtime_hours ai_governance_user_limit aibridge appearance "
    "audit_log boundary browser_only connection_log control_shared_ports custom_roles external_provisioner_daemons "
    "external_token_encryption high_availability managed_agent_limit multiple_external_auth multiple_organizations "
    "scim service_accounts task_batch_actions template_rbac user_limit user_role_management "
    "workspace_batch_actions workspace_external_agent workspace_prebuilds workspace_proxy"
).split()
# Features this server does not have. Reporting them as enabled would show buttons without a function.
_OFF = frozenset({"agent_runtime_hours", "ai_governance_user_limit", "aibridge", "boundary", "managed_agent_limit"})
_APPEARANCE = "appearance"
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


async def entitlements(ctx: Context) -> Entitlements:
    """Return the entitlements: every feature is included, there are no licences."""
    count = await ctx.db.read(user_store.count_users)
    features = {
        name: Feature(entitlement="entitled", enabled=name not in _OFF and _switched_on(ctx, name)) for name in FEATURES
    }
    features["user_limit"] = Feature(entitlement="entitled", enabled=False, actual=count)
    return Entitlements(
        features=features,
        warnings=[],
        errors=[],
        has_license=True,
        trial=False,
        require_telemetry=False,
        refreshed_at=ctx.clock.now(),
    )


def _switched_on(ctx: Context, name: str) -> bool:
    resolved = ctx.config.resolved
    option = {"browser_only": "browser_only", "scim": "scim_auth_header"}.get(name)
    if option is not None:
        return bool(resolved[option]) if resolved else False
    return True


def ssh_config(ctx: Context) -> SSHConfigResponse:
    options = dict(ssh_option(item) for item in ctx.config.ssh_config_options)
    return SSHConfigResponse(
        hostname_prefix=ctx.config.ssh_hostname_prefix,
        hostname_suffix=ctx.config.workspace_hostname_suffix,
        ssh_config_options=options,
    )


def _support_links(ctx: Context) -> list[LinkConfig]:
    resolved = ctx.config.resolved
    configured = struct_value(resolved["support_links"]) if resolved else None
    if configured:
        return [LinkConfig(name=link["name"], target=link["target"], icon=link.get("icon", "")) for link in configured]
    bug = "https://github.com/coder/coder/issues/new?labels=needs+triage&body=Version: "
    return [
        LinkConfig(name="Documentation", target=documentation_url(ctx), icon="docs"),
        LinkConfig(name="Report a bug", target=f"{bug}[`{BUILD_VERSION}`](https://github.com/coder/coder)", icon="bug"),
        LinkConfig(name="Join the Coder Discord", target="https://discord.gg/coder", icon="chat"),
        LinkConfig(name="Star the Repo", target="https://github.com/coder/coder", icon="star"),
    ]


async def appearance(ctx: Context) -> AppearanceConfig:
    stored = await ctx.db.read(site_settings.get_config, _APPEARANCE)
    chosen = codec.decode(stored, UpdateAppearanceConfig) if stored else None
    return AppearanceConfig(
        application_name=chosen.application_name if chosen else "",
        logo_url=chosen.logo_url if chosen else "",
        docs_url=documentation_url(ctx),
        service_banner=chosen.service_banner if chosen else BannerConfig(enabled=False),
        announcement_banners=chosen.announcement_banners if chosen else [],
        support_links=_support_links(ctx),
    )


async def set_appearance(ctx: Context, subject: Subject, chosen: UpdateAppearanceConfig) -> None:
    """Set the appearance. Raises Forbidden, and Invalid for a malformed colour that was not stored before."""
    if not may(subject, "update", Class("deployment_config")):
        raise Forbidden("Insufficient permissions to update appearance")
    present = await appearance(ctx)
    stored = _colours(present.service_banner, *present.announcement_banners)
    for colour in _colours(chosen.service_banner, *chosen.announcement_banners):
        if colour not in stored and not _COLOUR.fullmatch(colour):
            raise Invalid(f'Invalid color format: "{colour}"', "expected # prefix and 6 characters")
    await ctx.db.run(site_settings.put_config, _APPEARANCE, codec.encode(chosen).decode())


def _colours(*banners: BannerConfig) -> list[str]:
    """Return the colours of visible banners, and those of others that have one."""
    return [banner.background_color or "" for banner in banners if banner.enabled or banner.background_color]


async def ping_database(ctx: Context) -> None:
    """Query the database for a row that always exists. Raises the error of the query."""
    await ctx.db.read(site_settings.get_config, "deployment_id")
