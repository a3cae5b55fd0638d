"""Everything the server has not heard yet: what an end waits for a while, and an upgrade until it is told.

A program that takes over is left the states and how many of them were told, nothing else of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol


class Unsent(Sized, Protocol):
    """Reports of one kind on their way."""

    async def wait_sent(self) -> None: ...


class Outbox:
    """Of one agent."""

    def __init__(self, kinds: Mapping[str, Unsent]) -> None:
        self._kinds = kinds

    def describe(self) -> str:
        """In words, "" when everything is told."""
        return ", ".join(f"unsent {name}: {len(kind)}" for name, kind in self._kinds.items() if len(kind))

    async def wait_quiet(self) -> None:
        """Returns at once when everything is told. One kind may come of another."""
        while self.describe():
            for kind in self._kinds.values():
                await kind.wait_sent()
