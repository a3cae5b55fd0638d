"""Client of the speed test on overlay port 3 (docs/protocol/agent-services.md#speed-test).

Each side sends one JSON line, then blocks of random bytes flow in one direction until the time is over. The agent is
the server. The client measures the bytes written to (or read from) the stream each second.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Literal

import trio

from coder.base.errors import CoderError

VERSION = 2
BLOCK = 2 << 20
PIECE = 64 << 10
"""Bytes of a send in a short test: on a slow line a whole block would outlast it."""
MAX_LINE = 4096
ANSWER_TIMEOUT = 10.0
"""Ours: seconds for the agent to answer the request. A silent one must not hold a server's turn for ever."""
INTERVAL = 1.0
"Seconds per line of the result, as in Tailscale's tool."
SHORTEST = 0.01
"Seconds below which a remainder is not a separate interval."

Direction = Literal["down", "up"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes transferred between two times, in seconds since the start."""

    start: float
    end: float
    size: int

    @property
    def mbits(self) -> float:
        """Return megabits (10^6) per second."""
        return self.size * 8 / 1e6 / (self.end - self.start) if self.end > self.start else 0.0


class _Meter:
    """Meter that divides a stream of byte counts into intervals."""

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
        """Return all intervals; the last is the whole test."""
        if now - self._cut > SHORTEST and self._since:
            self._close(now)
        return [*self.intervals, Interval(0.0, now - self.began, self.total)]

    def _close(self, now: float) -> None:
        self.intervals.append(Interval(self._cut - self.began, now - self.began, self._since))
        self._cut, self._since = now, 0


async def run_speedtest(
    stream: trio.abc.HalfCloseableStream, direction: Direction, seconds: float, most: float = math.inf
) -> list[Interval]:
    """Run a test over a new stream to the agent's speed test port. Return its intervals; the last is the total.

    With `most`, the test ends after about so many bytes, and at the latest a second after `seconds`. Raise CoderError
    if the agent rejects the test, is silent for `ANSWER_TIMEOUT` seconds, or disconnects before it starts.
    """
    async with stream:
        try:
            with trio.fail_after(ANSWER_TIMEOUT):
                rest = await _agree(stream, direction, seconds)
        except trio.TooSlowError:
            raise CoderError("speedtest", "the agent's speed test service did not answer in time") from None
        except trio.BrokenResourceError as error:
            raise CoderError("speedtest", "the agent ended the speed test before it began") from error
        meter = _Meter(trio.current_time())
        # The server's time starts at the same moment; the protocol's timeout is four times the test's length.
        with trio.move_on_after(4 * seconds if math.isinf(most) else seconds + 1):
            try:
                if direction == "down":
                    await _download(stream, meter, rest, most)
                else:
                    await _upload(stream, meter, seconds, most)
            except trio.BrokenResourceError:
                if not meter.total:
                    raise CoderError("speedtest", "the agent ended the speed test before sending data") from None
        return meter.finish(trio.current_time())


async def _agree(stream: trio.abc.HalfCloseableStream, direction: Direction, seconds: float) -> bytes:
    request = {"version": VERSION, "time": int(seconds * 1e9), "direction": 0 if direction == "down" else 1}
    await stream.send_all(json.dumps(request, separators=(",", ":")).encode() + b"\n")
    data = b""
    while b"\n" not in data:
        chunk = await stream.receive_some(MAX_LINE)
        if not chunk or len(data) > MAX_LINE:
            raise CoderError("speedtest", "the agent's speed test service did not answer", "The agent may be too old.")
        data += chunk
    line, _, rest = data.partition(b"\n")
    try:
        problem = json.loads(line).get("error")
    except (ValueError, AttributeError, RecursionError) as error:
        raise CoderError("speedtest", "the agent's answer is not that of a speed test service") from error
    if problem:
        raise CoderError("speedtest", f"the agent refused the speed test: {problem}")
    return rest


async def _download(stream: trio.abc.ReceiveStream, meter: _Meter, rest: bytes, most: float) -> None:
    meter.count(len(rest), trio.current_time())
    while meter.total < most and (chunk := await stream.receive_some(BLOCK)):
        meter.count(len(chunk), trio.current_time())


async def _upload(stream: trio.abc.HalfCloseableStream, meter: _Meter, seconds: float, most: float) -> None:
    block = os.urandom(BLOCK if math.isinf(most) else PIECE)
    deadline = trio.current_time() + seconds
    while trio.current_time() < deadline and meter.total < most:
        await stream.send_all(block)
        meter.count(len(block), trio.current_time())
    await stream.send_eof()
