"""Prebuilt workspaces: created ahead for presets, pausing their creation, invalidating them.

They belong to a system user until a user claims them (`prebuild_claims.py`). `prebuild_reconciliation.py` creates and
deletes them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.templates.parameters import InvalidatedPreset
from coder.api.workspaces.workspace_requests import PrebuildsSettings
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_template, lock_template
from coder.coderd.store.site import site_settings
from coder.coderd.store.workspaces import prebuilds as store
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_SETTINGS = "prebuilds_settings"


async def is_paused(tx: Tx) -> bool:
    """Return whether reconciliation is paused."""
    stored = await site_settings.get_config(tx, _SETTINGS)
    return bool(stored and json.loads(stored).get("reconciliation_paused"))


async def settings(ctx: Context, subject: Subject) -> PrebuildsSettings:
    """Return whether reconciliation is paused. Raises Forbidden."""
    require(subject, "read", Class("deployment_config"), hidden=False)
    return PrebuildsSettings(reconciliation_paused=await ctx.db.read(is_paused))


async def set_paused(ctx: Context, subject: Subject, paused: bool) -> bool:
    """Pause or resume reconciliation; return False if nothing changed. Raises Forbidden."""
    require(subject, "update", Class("deployment_config"), hidden=False)

    async def write(tx: Tx) -> bool:
        if await is_paused(tx) == paused:
            return False
        await site_settings.put_config(tx, _SETTINGS, json.dumps({"reconciliation_paused": paused}))
        return True

    return await ctx.db.run(write)


async def invalidate(ctx: Context, subject: Subject, template_id: UUID) -> list[InvalidatedPreset]:
    """Replace every unclaimed workspace of the template's presets; the old ones cannot be claimed. Raises NotFound."""
    await load_template(ctx, subject, template_id, "update")
    now = ctx.clock.now()

    async def write(tx: Tx) -> list[tuple[str, str, str]]:
        await lock_template(tx, subject, template_id)
        return await store.invalidate(tx, template_id, now)

    invalidated = await ctx.db.run(write)
    return [InvalidatedPreset(template, version, preset) for template, version, preset in invalidated]
