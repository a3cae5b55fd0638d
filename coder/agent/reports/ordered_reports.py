"""Reports sent one by one, in order, and kept until the server has accepted or rejected them. Bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from coder.base.log import get_logger
from coder.rpc.errors import RpcError

log = get_logger("agent")

Report = TypeVar("Report")


class OrderedReports(Generic[Report]):
    """Queue of one kind of report."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[Report] = deque()
        self._changed = trio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, report: Report) -> bool:
        """Append a report. Returns False when the queue is full: the report is dropped."""
        if len(self._waiting) >= self._limit:
            return False
        self._waiting.append(report)
        self._wake()
        return True

    async def send_loop(self, send: Callable[[Report], Awaitable[object]]) -> None:
        """Send until the connection breaks, which ends the loop. A report the server rejects is dropped."""
        while True:
            while not self._waiting:
                await self._changed.wait()
            try:
                await send(self._waiting[0])
            except RpcError as error:
                log.debug("the server rejected a report", error=error)
            self._waiting.popleft()
            self._wake()

    async def wait_sent(self) -> None:
        while self._waiting:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
