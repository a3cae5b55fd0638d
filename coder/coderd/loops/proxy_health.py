"""Looks at workspace proxies once a minute, and forgets processes of theirs that fell silent."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from coder.coderd.services.proxy_health import ProxyHealth
from coder.coderd.store import workspace_proxies as store

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

SILENT = timedelta(hours=1)
"""A process registers every half minute; after this it is forgotten."""


async def run(ctx: Context) -> None:
    """Runs until cancelled."""
    while True:
        await trio.sleep(ctx.config.proxy_health_interval.total_seconds())
        try:
            await turn(ctx)
        except Exception as error:
            # The database may be away for a moment; the proxies will be there next time.
            ctx.log.error("the workspace proxies could not be looked at", error=error)


async def turn(ctx: Context) -> None:
    health: ProxyHealth = ctx.part(ProxyHealth)
    await health.look()
    await ctx.db.run(store.forget_replicas, ctx.clock.now() - SILENT)
