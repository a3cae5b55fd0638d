"""Reports the server has not confirmed: a shutdown waits for them briefly, an upgrade until they are sent.

A program that takes over receives the states and the number confirmed, nothing else of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol


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

    async def wait_idle(self) -> None:
        """Wait until everything is sent; return at once when it is. Sending one kind may add another."""
        while self.describe():
            for kind in self._kinds.values():
                await kind.wait_sent()
