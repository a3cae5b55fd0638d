"""Sections of the health report that an administrator dismissed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

from coder.api.base.refusals import Failed
from coder.api.site.health import HealthSection, HealthSettings
from coder.coderd.services.access.authorization import require
from coder.coderd.store.site import site_settings
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


SECTIONS: tuple[HealthSection, ...] = get_args(HealthSection)
_SETTINGS = "health_settings"


def require_health(subject: Subject, action: str = "read") -> None:
    """Require permission to see the deployment's health. Raises Forbidden."""
    require(subject, action, Class("debug_info"), hidden=False)


async def settings(ctx: Context, subject: Subject) -> HealthSettings:
    """Return the dismissed sections. Raises Forbidden."""
    require_health(subject)
    return HealthSettings(dismissed_healthchecks=await dismissed(ctx))


async def dismissed(ctx: Context) -> list[HealthSection]:
    stored = await ctx.db.read(site_settings.get_config, _SETTINGS)
    sections: list[HealthSection] | None = json.loads(stored) if stored else None
    return sections or []


async def set_dismissed(ctx: Context, subject: Subject, sections: list[str] | None) -> bool:
    """Set the dismissed sections. Return False when nothing changes.

    None is stored as such, and means the same as an empty list. Raises Forbidden, Failed (no such section: upstream's
    500).
    """
    require(subject, "update", Class("deployment_config"), hidden=False)
    unknown = [section for section in sections or () if section not in SECTIONS]
    if unknown:
        raise Failed("Failed to validate health settings.", f"unknown healthcheck section: {unknown[0]}")
    value = json.dumps(sections)
    if await ctx.db.read(site_settings.get_config, _SETTINGS) == value:
        return False
    await ctx.db.run(site_settings.put_config, _SETTINGS, value)
    return True
