"""Poll of a slow source, shared by everything that watches it: never two at a time, and none newer than a watcher
needs.

There is no background task: the watcher that needs a newer result polls, the others wait for that poll. The result is
dropped with the last watcher.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import trio

Result = TypeVar("Result")


class SharedPoll(Generic[Result]):
    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._latest: tuple[float, Result] | None = None
        self.watchers = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count one more watcher for the duration of the block."""
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1
            if not self.watchers:
                self._latest = None

    async def after(self, since: float, poll: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of a poll that began after `since` (seconds of trio's clock). Raises what `poll` raises."""
        async with self._lock:
            if self._latest is None or self._latest[0] <= since:
                began = trio.current_time()
                self._latest = (began, await poll())
            return self._latest[1]
