"""Loop that sends the weekly report on failed builds, by `services/workspaces/builds/build_reports.py`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.workspaces.builds.build_reports import report

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

LOOK = timedelta(minutes=15)


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    await run_loop(ctx, "reports", turn, failed_rest=LOOK.total_seconds())


async def turn(ctx: Context, log: Logger) -> float:
    notified = await report(ctx)
    if notified:
        log.info("failed builds were reported", readers=notified)
    return LOOK.total_seconds()
