"""What is left to do once a request is answered.

For work that is done for some and not for others while nobody may tell which from the answer, nor from how long it
takes: a failed login of an address somebody has is written down, of another nothing is. Both leave something here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

Work = Callable[[], Awaitable[object]]
MOST = 256
"""Things left to do at once: who leaves one more waits, whoever it is for. Passwords take longer to hash than a failed
login to write down, so that it takes a database that hangs."""
LONGEST = 30.0
"""Seconds one thing may take before the next has its turn, and all of them while the server stops."""


class Afterwards:
    """One thing at a time, in the order they came."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._put, self._taken = trio.open_memory_channel[tuple[str, Work]](MOST)
        self._awaited: list[trio.Event] = []
        ctx.nursery.start_soon(self._do_all)

    async def leave(self, what: str, work: Work) -> None:
        """`work` runs outside of the request, and has all it needs of that with it. `what` names it in the log."""
        await self._put.send((what, work))

    async def done(self) -> None:
        """Waits until all that was left before is done, or will not be done any more: the server was cancelled."""
        over = trio.Event()

        async def tell() -> None:
            over.set()

        self._awaited.append(over)
        try:
            await self.leave("the end", tell)
            await over.wait()
        except trio.BrokenResourceError:
            return
        finally:
            self._awaited.remove(over)

    async def _do_all(self) -> None:
        try:
            async for what, work in self._taken:
                await self._do(what, work)
        finally:
            self._taken.close()
            for over in self._awaited:
                over.set()

    async def _do(self, what: str, work: Work) -> None:
        try:
            with trio.fail_after(LONGEST):
                await work()
        except Exception as error:
            # It is answered for: what cannot be done any more must not keep the others from it.
            self._ctx.log.error("what a request left was not done", what=what, error=error)
