"""The deployment's setting for dynamic client registration (RFC 7591)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.login.oauth2 import OAuth2ProviderSettings
from coder.coderd.services.access.application_limits import require_lasting
from coder.coderd.services.access.authorization import require
from coder.coderd.store.site import site_settings as site_store
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


_REGISTRATION = "oauth2_provider_dynamic_registration"


_SETTINGS = Class("deployment_config")


async def dynamic_registration(ctx: Context) -> bool:
    """Whether clients may register dynamically (RFC 7591). Off until an administrator enables it."""
    return await ctx.db.read(site_store.get_config, _REGISTRATION) == "true"


async def read_settings(ctx: Context, subject: Subject) -> bool:
    require(subject, "read", _SETTINGS, hidden=False)
    return await dynamic_registration(ctx)


async def audited_settings(ctx: Context, subject: Subject) -> OAuth2ProviderSettings:
    """Return the settings as the audit log has them."""
    return OAuth2ProviderSettings(dynamic_client_registration_enabled=await read_settings(ctx, subject))


async def change_settings(ctx: Context, subject: Subject, allowed: bool | None) -> bool:
    """Change the settings; None leaves them unchanged."""
    await require_lasting(ctx, subject, "update", _SETTINGS, "oauth2_provider_app", hidden=False)
    if allowed is not None:
        await ctx.db.run(site_store.put_config, _REGISTRATION, "true" if allowed else "false")
    return await dynamic_registration(ctx)
