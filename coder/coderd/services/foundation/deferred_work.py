"""Work to do after a request has been answered.

The response, and the time it takes, must not reveal whether there is such work: a failed login is recorded for an email
address that belongs to a user, and nothing is recorded for an unknown one. Both requests put an item into this queue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

Work = Callable[[], Awaitable[object]]
MAX_ITEMS = 256
"""Items in the queue; a caller that adds one more waits. Hashing a password takes longer than recording a failed login,
so only a hanging database fills the queue.
"""
ITEM_TIMEOUT = 30.0
"""Seconds one item may take before the next one starts, and seconds all of them may take at shutdown."""


class DeferredWork:
    """Queue that runs its items one at a time, in order."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._send, self._receive = trio.open_memory_channel[tuple[str, Work]](MAX_ITEMS)
        self._awaited: list[trio.Event] = []

    def start(self, nursery: trio.Nursery) -> None:
        """Run the items that are queued, until cancelled."""
        nursery.start_soon(self._do_all)

    async def enqueue(self, what: str, work: Work) -> None:
        """Run `work` outside of the request, with all it needs bound to it. `what` names the work in the log."""
        await self._send.send((what, work))

    async def wait_until_done(self) -> None:
        """Wait until the items queued before have run, or will never run because the server was cancelled."""
        finished = trio.Event()

        async def tell() -> None:
            finished.set()

        self._awaited.append(finished)
        try:
            await self.enqueue("the end", tell)
            await finished.wait()
        except trio.BrokenResourceError:
            return
        finally:
            self._awaited.remove(finished)

    async def _do_all(self) -> None:
        try:
            async for what, work in self._receive:
                await self._do(what, work)
        finally:
            self._receive.close()
            for finished in self._awaited:
                finished.set()

    async def _do(self, what: str, work: Work) -> None:
        try:
            with trio.fail_after(ITEM_TIMEOUT):
                await work()
        except Exception as error:
            # The request has been answered: a failing item must not stop the items after it.
            self._ctx.log.error("deferred work failed", what=what, error=error)
