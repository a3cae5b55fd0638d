"""Loop that deletes old records, by `services/site/retention.py`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.site.retention import purge_due

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EVERY = timedelta(minutes=10)


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    await run_loop(ctx, "purge", turn, failed_rest=EVERY.total_seconds())


async def turn(ctx: Context, log: Logger) -> float:
    deleted = await purge_due(ctx)
    if any(deleted.values()):
        log.info("old rows were purged", **deleted)
    return EVERY.total_seconds()
