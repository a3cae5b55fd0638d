"""Pings with a waiting caller: a token for each, and its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import trio

from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.description import PingResult


class WaitingPing:
    """A ping with a waiting caller."""

    def __init__(self, token: int) -> None:
        self.token = token
        self._event = trio.Event()
        self._results: list[PingResult] = []

    async def wait_answer(self) -> PingResult:
        """Wait for the first answer."""
        await self._event.wait()
        return self._results[0]

    def answer(self, result: PingResult) -> None:
        """Set the answer; later ones change nothing."""
        self._results.append(result)
        self._event.set()


class WaitingPings:
    """The waiting pings of a node."""

    def __init__(self) -> None:
        self._waiting: dict[int, WaitingPing] = {}
        self._tokens = count(1)

    @contextmanager
    def expect(self) -> Iterator[WaitingPing]:
        """Register a ping to be sent with this token; forget it when the block is left."""
        waiting = WaitingPing(next(self._tokens))
        self._waiting[waiting.token] = waiting
        try:
            yield waiting
        finally:
            del self._waiting[waiting.token]

    def answered(self, answer: PingAnswered, region: int, region_code: str) -> None:
        """Pass an answer to its caller, if any. `region`, `region_code`: of the relay it came by."""
        waiting = self._waiting.get(answer.token)
        if waiting is None:
            return
        if answer.to is None:
            waiting.answer(PingResult(answer.latency, "relay", "", region, region_code))
        else:
            waiting.answer(PingResult(answer.latency, "direct", str(UdpAddress(*answer.to)), 0))
