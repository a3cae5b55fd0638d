"""Loop that reads the list of releases once a day, as upstream does, by `services/site/release_check.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

INTERVAL = 24 * 3600.0
RETRY_INTERVAL = 3600.0
"""Seconds (ours) after a list that could not be read."""


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    if ctx.services.api.release_check.is_enabled():
        await run_loop(ctx, "release_check", turn, failed_rest=RETRY_INTERVAL)
        return
    if ctx.config.update_check:
        ctx.log.warn("updates are not checked, because --release-list names no list of releases")
    await trio.sleep_forever()


async def turn(ctx: Context, log: Logger) -> float:
    check = ctx.services.api.release_check
    if await check.refresh() and check.newest is not None:
        log.info("a newer release is available", version=check.newest.version)
    return INTERVAL
