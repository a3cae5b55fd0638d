"""Loop that starts, stops, deletes and makes dormant the workspaces that are due (`services/workspaces/autobuilds.py`),
and notifies owners before a stop (`services/workspaces/autostop_reminders.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.services.workspaces.autostop_reminders import remind

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    rest = ctx.config.autobuild_poll_interval.total_seconds()
    await run_loop(ctx, "autobuild", turn, first_rest=rest, failed_rest=rest)


async def turn(ctx: Context, log: Logger) -> float:
    for taken in await take_due_steps(ctx):
        log.info("a step was due", workspace=taken.workspace_id, reason=taken.step.reason)
    await remind(ctx)
    return ctx.config.autobuild_poll_interval.total_seconds()
