"""Starts, stops, puts to sleep and deletes workspaces when they are due. The steps are `services/autobuilds.py`.

A turn's clock is cut down to the full minute, as upstream's is: 09:00 means the first turn of that minute.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import trio

from coder.coderd.services.autobuilds import Taken, take_steps
from coder.coderd.services.metrics import Metrics

if TYPE_CHECKING:
    from coder.coderd.services.context import Context


async def run(ctx: Context) -> None:
    """Runs until cancelled."""
    log = ctx.log.bind(loop="autobuild")
    while True:
        await trio.sleep(ctx.config.autobuild_poll_interval.total_seconds())
        try:
            for taken in await turn(ctx):
                log.info("a step was due", workspace=taken.workspace_id, reason=taken.step.reason)
        except Exception as error:
            # The database may be away for a moment; what is due stays due.
            log.error("a turn failed", error=error)


async def turn(ctx: Context) -> list[Taken]:
    """One turn; returns what was done."""
    started = ctx.clock.monotonic()
    taken = await take_steps(ctx, full_minute(ctx.clock.now()))
    metrics: Metrics = ctx.part(Metrics)
    metrics["coderd_lifecycle_autobuild_execution_duration_seconds"].observe(ctx.clock.monotonic() - started)
    return taken


def full_minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0)
