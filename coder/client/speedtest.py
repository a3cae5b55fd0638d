"""The asking side of the speed test on overlay port 3 (docs/protocol/agent-services.md#speed-test).

One JSON line each way, then blocks of random bytes in one direction until the time is over. The answering side is
the agent's. What is measured is bytes taken by (or from) the stream a second at a time.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Literal

import trio

from coder.base.errors import CoderError

VERSION = 2
BLOCK = 2 << 20
MAX_LINE = 4096
INTERVAL = 1.0
"Seconds of one line of the result, as the field's tool has it."
SHORTEST = 0.01
"Seconds below which a rest is no interval of its own."

Direction = Literal["down", "up"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes that passed between two moments, seconds since the start."""

    start: float
    end: float
    size: int

    @property
    def mbits(self) -> float:
        """Megabits (10^6) a second."""
        return self.size * 8 / 1e6 / (self.end - self.start) if self.end > self.start else 0.0


class _Meter:
    """Cuts a stream of counts into intervals."""

    def __init__(self, now: float) -> None:
        self.began = self._cut = now
        self.total = self._since = 0
        self.intervals: list[Interval] = []

    def count(self, size: int, now: float) -> None:
        self.total += size
        self._since += size
        if now - self._cut >= INTERVAL:
            self._close(now)

    def finish(self, now: float) -> list[Interval]:
        """All intervals; the last is the whole test."""
        if now - self._cut > SHORTEST and self._since:
            self._close(now)
        return [*self.intervals, Interval(0.0, now - self.began, self.total)]

    def _close(self, now: float) -> None:
        self.intervals.append(Interval(self._cut - self.began, now - self.began, self._since))
        self._cut, self._since = now, 0


async def run_speedtest(stream: trio.abc.HalfCloseableStream, direction: Direction, seconds: float) -> list[Interval]:
    """One test over a fresh stream to the agent's speed test port: its intervals, the last being the whole.

    Raises CoderError when the agent refuses or goes away before the test began.
    """
    async with stream:
        try:
            rest = await _agree(stream, direction, seconds)
        except trio.BrokenResourceError as error:
            raise CoderError("speedtest", "the agent ended the speed test before it began") from error
        meter = _Meter(trio.current_time())
        # The other side's time runs from the same moment; four times its length is the protocol's patience.
        with trio.move_on_after(4 * seconds):
            try:
                await (_download(stream, meter, rest) if direction == "down" else _upload(stream, meter, seconds))
            except trio.BrokenResourceError:
                if not meter.total:
                    raise CoderError("speedtest", "the agent ended the speed test before any data came") from None
        return meter.finish(trio.current_time())


async def _agree(stream: trio.abc.HalfCloseableStream, direction: Direction, seconds: float) -> bytes:
    request = {"version": VERSION, "time": int(seconds * 1e9), "direction": 0 if direction == "down" else 1}
    await stream.send_all(json.dumps(request, separators=(",", ":")).encode() + b"\n")
    data = b""
    while b"\n" not in data:
        chunk = await stream.receive_some(MAX_LINE)
        if not chunk or len(data) > MAX_LINE:
            raise CoderError("speedtest", "the agent's speed test service gave no answer", "Is the agent very old?")
        data += chunk
    line, _, rest = data.partition(b"\n")
    try:
        problem = json.loads(line).get("error")
    except (ValueError, AttributeError, RecursionError) as error:
        raise CoderError("speedtest", "the agent's answer is not that of a speed test service") from error
    if problem:
        raise CoderError("speedtest", f"the agent refused the speed test: {problem}")
    return rest


async def _download(stream: trio.abc.ReceiveStream, meter: _Meter, rest: bytes) -> None:
    meter.count(len(rest), trio.current_time())
    while chunk := await stream.receive_some(BLOCK):
        meter.count(len(chunk), trio.current_time())


async def _upload(stream: trio.abc.HalfCloseableStream, meter: _Meter, seconds: float) -> None:
    block = os.urandom(BLOCK)
    deadline = trio.current_time() + seconds
    while trio.current_time() < deadline:
        await stream.send_all(block)
        meter.count(BLOCK, trio.current_time())
    await stream.send_eof()
