"""What every loop shares: rest, take a turn, survive a turn that fails, until the server stops.

A loop is a name and a turn. The turn does what is due, says in the log what it did, and returns how long to rest; what
is due and how it is done is a service's business. A channel of the database can end a rest early.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from coder.base.log import Logger

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

Turn = Callable[["Context", Logger], Awaitable[float]]
"""Does what is due; returns seconds until the next turn."""
Wake = Callable[[], Awaitable[object]]


async def run_loop(
    ctx: Context, name: str, turn: Turn, *, first_rest: float = 0.0, failed_rest: float, channel: str = ""
) -> None:
    """Runs until cancelled. `failed_rest`: seconds to wait after a turn that raised."""
    log = ctx.log.bind(loop=name)
    rest = first_rest
    async with _wake_of(ctx, channel) as wake:
        while True:
            with trio.move_on_after(rest):
                await wake()
            try:
                rest = await turn(ctx, log)
            except Exception as error:
                # The database may be away for a moment; what is due stays due.
                log.error("a turn failed", error=error)
                rest = failed_rest


@contextlib.asynccontextmanager
async def _wake_of(ctx: Context, channel: str) -> AsyncIterator[Wake]:
    if not channel:
        yield trio.sleep_forever
        return
    async with ctx.db.listen(channel) as notifications:
        yield notifications.receive
