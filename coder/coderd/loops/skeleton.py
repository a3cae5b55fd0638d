"""Common code of loops: rest, run a turn, survive a failed turn, until the server stops.

A loop is a name and a turn. The turn does the due work, logs it, and returns the seconds to rest; the due work itself
is in a service. A channel of the database can end a rest early.
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
"""Does the due work; returns seconds until the next turn."""
Wake = Callable[[], Awaitable[object]]


async def run_loop(
    ctx: Context, name: str, turn: Turn, *, first_rest: float = 0.0, failed_rest: float, channel: str = ""
) -> None:
    """Run until cancelled. `failed_rest`: seconds to wait after a turn that raised."""
    log = ctx.log.bind(loop=name)
    rest = first_rest
    async with _wake_of(ctx, channel) as wake:
        while True:
            with trio.move_on_after(rest):
                await wake()
            try:
                rest = await turn(ctx, log)
            except Exception as error:
                # The database may be down for a moment; the work stays due.
                log.error("a turn failed", error=error)
                rest = failed_rest


@contextlib.asynccontextmanager
async def _wake_of(ctx: Context, channel: str) -> AsyncIterator[Wake]:
    if not channel:
        yield trio.sleep_forever
        return
    async with ctx.db.listen(channel) as notifications:
        yield notifications.receive
