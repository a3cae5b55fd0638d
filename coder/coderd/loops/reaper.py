"""Loop that ends jobs of lost daemons, and deletes daemons unseen for a week, by `services/provisioning/reaping.py`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.provisioning.reaping import LISTENING, Attention, reap

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    interval = ctx.config.job_hang_detector_interval.total_seconds()
    attention = Attention(ctx)

    async def attentive_turn(ctx: Context, log: Logger) -> float:
        rest = await turn(ctx, log, attention.excused()) if attention.look() else min(LISTENING, interval)
        attention.expect(rest)
        return rest

    await run_loop(ctx, "reaper", attentive_turn, failed_rest=min(LISTENING, interval))


async def turn(ctx: Context, log: Logger, excused: timedelta) -> float:
    for job in await reap(ctx, excused):
        log.warn("a job was reaped", job=job.id, type=job.type)
    return ctx.config.job_hang_detector_interval.total_seconds()
