"""Reports the server has not confirmed: a shutdown waits for them briefly, an upgrade until they are sent.

A program that takes over receives the states and the number confirmed, nothing else of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import Protocol

import trio

REPORT_GRACE = 5.0
"Seconds for the last reports to be delivered at shutdown."
AWAY_GRACE = 0.5
"Seconds (ours) of them without a connection: a service manager or user who stops the agent waits."


class Unsent(Sized, Protocol):
    """Unsent reports of one kind."""

    async def wait_sent(self) -> None: ...


class Outbox:
    """Unsent reports of one agent."""

    def __init__(self, kinds: Mapping[str, Unsent]) -> None:
        self._kinds = kinds

    def describe(self) -> str:
        """Return the unsent reports in words, "" when all are sent."""
        return ", ".join(f"unsent {name}: {len(kind)}" for name, kind in self._kinds.items() if len(kind))

    async def deliver(self, is_connected: Callable[[], bool]) -> None:
        """Wait until everything is sent, for at most REPORT_GRACE seconds, or AWAY_GRACE without a connection."""
        with trio.move_on_after(REPORT_GRACE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_wait_disconnected, is_connected, nursery.cancel_scope)
                await self.wait_idle()
                nursery.cancel_scope.cancel()

    async def wait_idle(self) -> None:
        """Wait until everything is sent; return at once when it is. Sending one kind may add another."""
        while self.describe():
            for kind in self._kinds.values():
                await kind.wait_sent()


async def _wait_disconnected(is_connected: Callable[[], bool], waiting: trio.CancelScope) -> None:
    was_connected = True
    while was_connected or is_connected():
        was_connected = is_connected()
        await trio.sleep(AWAY_GRACE)
    waiting.cancel()
