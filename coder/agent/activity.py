"""Activity of an agent that a new program could not take over: SSH connections and scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

POLL_INTERVAL = 10.0
"""Seconds (ours) between two counts of what nothing reports the end of."""


class Idle:
    """Wait for a count to become zero."""

    def __init__(self, kind: str, count: Callable[[], int]) -> None:
        self._kind, self._count = kind, count

    def describe(self) -> str:
        """Return what is counted in words, "" for none."""
        return f"{self._kind}: {count}" if (count := self._count()) else ""

    async def wait_idle(self) -> None:
        while self._count():  # noqa: ASYNC110 - their ends are not reported
            await trio.sleep(POLL_INTERVAL)


class Activity:
    """Count of running activities by kind. `wait_idle` blocks while any activity runs."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._changed = trio.Event()

    @contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """Count one more activity of kind `kind` for the duration of the block."""
        self._running[kind] += 1
        try:
            yield
        finally:
            self._running[kind] -= 1
            self._changed.set()
            self._changed = trio.Event()

    def describe(self) -> str:
        """Return the running activities in words, "" when nothing runs."""
        return ", ".join(f"{kind}: {count}" for kind, count in sorted(self._running.items()) if count)

    async def wait_idle(self) -> None:
        """Wait until nothing runs; return at once when nothing runs now."""
        while self.describe():
            await self._changed.wait()

    def next_end(self) -> trio.Event:
        """Return the event that is set when the next activity ends. Take the event before waiting for anything else, so
        that no end is missed."""
        return self._changed
