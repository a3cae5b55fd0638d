"""What goes on in an agent that a new program could not go on with: SSH connections and scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Activity:
    """Counts what runs; `wait_quiet` blocks while anything does."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._changed = trio.Event()

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """The block is one more of `what`."""
        self._running[what] += 1
        try:
            yield
        finally:
            self._running[what] -= 1
            self._changed.set()
            self._changed = trio.Event()

    def describe(self) -> str:
        """In words, "" when nothing runs."""
        return ", ".join(f"{what}: {count}" for what, count in sorted(self._running.items()) if count)

    async def wait_quiet(self) -> None:
        """Returns at once when nothing runs."""
        while self.describe():
            await self._changed.wait()

    def next_end(self) -> trio.Event:
        """Set when something that runs, or will, has ended. Take it before you wait for anything else: that counts."""
        return self._changed
