"""One look at something slow, for everybody who watches it: never two at once, and none newer than somebody needs.

There is no task behind it: who needs a newer look takes it, the others wait for that one. With the last watcher the
memory of it goes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import trio

Found = TypeVar("Found")


class SharedLook(Generic[Found]):
    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._latest: tuple[float, Found] | None = None
        self.watchers = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """The block is one more watcher."""
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1
            if not self.watchers:
                self._latest = None

    async def after(self, since: float, look: Callable[[], Awaitable[Found]]) -> Found:
        """What a look that began after `since` (seconds of trio's clock) has found. Raises what `look` raises."""
        async with self._lock:
            if self._latest is None or self._latest[0] <= since:
                began = trio.current_time()
                self._latest = (began, await look())
            return self._latest[1]
