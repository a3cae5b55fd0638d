"""Loop that collects cyclic garbage among old objects in each process, when it is due (`coder/base/garbage.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.base import garbage
from coder.base.log import Logger
from coder.coderd.loops.skeleton import run_loop

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EVERY = 60.0
"""Seconds between two looks."""


async def run(ctx: Context) -> None:
    """Run until cancelled."""
    await run_loop(ctx, "collector", turn, first_rest=EVERY, failed_rest=EVERY)


async def turn(_ctx: Context, log: Logger) -> float:
    await trio.lowlevel.checkpoint()
    swept = garbage.sweep_if_due()
    if swept is not None:
        log.info("garbage among old objects was collected", objects=swept[0], seconds=round(swept[1], 3))
    return EVERY
