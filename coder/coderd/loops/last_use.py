"""Loop that writes the last use of workspaces, by `services/activity/last_use.py`; once more when the server stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EVERY = 60.0
"""Seconds."""
LAST_WORDS = 2.0
"""Seconds the last write may take."""


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    try:
        await run_loop(ctx, "last use", turn, first_rest=EVERY, failed_rest=EVERY)
    finally:
        with trio.move_on_after(LAST_WORDS, shield=True):
            await _write_last(ctx)


async def _write_last(ctx: Context) -> None:
    try:
        await ctx.services.last_use.flush()
    except Exception as error:
        # A minute of uses is lost. A stop must not fail for it.
        ctx.log.warn("the last uses of workspaces were not written", error=error)


async def turn(ctx: Context, _log: Logger) -> float:
    await ctx.services.last_use.flush()
    return EVERY
