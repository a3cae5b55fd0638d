"""Pings somebody waits for: a token for each, and the answer that came back with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import trio

from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.description import PingResult


class WaitingPing:
    """One of them."""

    def __init__(self, token: int) -> None:
        self.token = token
        self._event = trio.Event()
        self._results: list[PingResult] = []

    async def wait_answer(self) -> PingResult:
        """The first answer."""
        await self._event.wait()
        return self._results[0]

    def answer(self, result: PingResult) -> None:
        """It came; later ones change nothing."""
        self._results.append(result)
        self._event.set()


class WaitingPings:
    """Those of one node."""

    def __init__(self) -> None:
        self._waiting: dict[int, WaitingPing] = {}
        self._tokens = count(1)

    @contextmanager
    def expect(self) -> Iterator[WaitingPing]:
        """A ping to be sent with this token; nobody waits for it when the block is left."""
        waiting = WaitingPing(next(self._tokens))
        self._waiting[waiting.token] = waiting
        try:
            yield waiting
        finally:
            del self._waiting[waiting.token]

    def answered(self, answer: PingAnswered, region: int, region_code: str) -> None:
        """Somebody may wait for it. `region`, `region_code`: of the relay it came by."""
        waiting = self._waiting.get(answer.token)
        if waiting is None:
            return
        if answer.to is None:
            waiting.answer(PingResult(answer.latency, "relay", "", region, region_code))
        else:
            waiting.answer(PingResult(answer.latency, "direct", str(UdpAddress(*answer.to)), 0))
