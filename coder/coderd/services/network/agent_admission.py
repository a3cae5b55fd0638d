"""Admission of agents that connect: a few at a time, in order, and the others hear when to come back.

After a restart all agents of a server return within seconds. Each arrival costs some 30 ms of processor time; if all
are served at once, all are slow, time out and come again. So a bounded number is served, a bounded queue waits as long
as clients do, and the rest gets 503 with `Retry-After`: seconds that spread them over the time their arrivals need.

An agent's token is checked before it queues (`checking`): the connection of a known agent keeps its place among those
of strangers, and one agent has at most a few turns.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager

import trio

from coder.api.base.refusals import Unavailable
from coder.appproxy.http.overload import OverloadSign

AT_ONCE = 16
"""Arrivals that are served at the same time: enough to keep the database's connections busy."""
CHECKS_AT_ONCE = 64
"""Tokens that are checked at the same time: each takes some turns of the event loop, which are long in a storm."""
MOST_WAITING = 512
OF_ONE_AGENT = 4
"""Arrivals of one agent: a link that requests nothing holds its turn for HOLD, and one token must not hold all."""
LONGEST_WAIT = 8.0
"""Seconds in the queue; clients give up after 20 s, proxies after 30 s or more."""
EARLY, SHARE = LONGEST_WAIT / 2, 0.8
"""Seconds by which agents are asked to return before their turn, and the share of the measured pace that a turn counts:
arrivals become faster while fewer agents wait, and the queue would run dry while the last ones rest."""
SLOWEST_PACE = 0.015
"""Most seconds that a turn counts: in the first moments of a storm arrivals are slow, and a queue that runs dry costs
more than a few more refusals."""
HOLD = 5.0
"""Seconds after which an agent that connected and requests nothing no longer counts."""
LONGEST_REST = 60
"""Most seconds of `Retry-After`."""
_FIRST_PACE = 0.02
_WEIGHT = 0.1


class Arrival:
    """An agent that is being served; `end` may be called again."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end: Callable[[], None] | None = on_end

    def end(self) -> None:
        """Let the next agent in."""
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()


class AgentAdmission:
    """Queue of arriving agents of this process. `monotonic` returns seconds."""

    def __init__(self, monotonic: Callable[[], float], overload: OverloadSign) -> None:
        self._monotonic = monotonic
        self._overload = overload
        self._waiting: OrderedDict[int, trio.Event] = OrderedDict()
        self._numbers = 0
        self._checks = trio.CapacityLimiter(CHECKS_AT_ONCE)
        "Tokens that are checked at the same time, those of agents that wait afterwards."
        self._arriving: dict[Hashable, int] = {}
        "Arrivals of each agent that are served or wait."
        self.running = 0
        self._pace = _FIRST_PACE
        "Seconds between two ends while others wait: measured."
        self._last_end: float | None = None
        self._expected: list[float] = []
        "Heap of the times at which agents that were sent away come back."
        self.refused = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def checking(self) -> AsyncIterator[None]:
        """Wait for a turn to check a token. Raises Unavailable with `Retry-After` when too many wait, or for too
        long."""
        if not self._checks.available_tokens and self._checks.statistics().tasks_waiting >= MOST_WAITING:
            raise self._refusal()
        with trio.move_on_after(LONGEST_WAIT) as scope:
            await self._checks.acquire()
        if scope.cancelled_caught:
            raise self._refusal()
        try:
            yield
        finally:
            self._checks.release()

    async def enter(self, agent: Hashable) -> Arrival:
        """Wait for a turn. Raises Unavailable with `Retry-After` when the queue is full, or does not move, or has
        several turns of this agent already."""
        if self._arriving.get(agent, 0) >= OF_ONE_AGENT:
            raise _refusal_for("An agent connects too often at once.", 1)
        self._arriving[agent] = self._arriving.get(agent, 0) + 1
        try:
            if self.running >= AT_ONCE or self._waiting:
                await self._wait()
            else:
                self.running += 1
        except BaseException:
            self._forget(agent)
            raise

        def end() -> None:
            self._forget(agent)
            self._end()

        return Arrival(end)

    def _forget(self, agent: Hashable) -> None:
        self._arriving[agent] -= 1
        if not self._arriving[agent]:
            del self._arriving[agent]

    async def _wait(self) -> None:
        if self.waiting >= MOST_WAITING or self.waiting * self._pace > LONGEST_WAIT:
            raise self._refusal()
        number, turn = self._numbers, trio.Event()
        self._numbers += 1
        self._waiting[number] = turn
        try:
            with trio.move_on_after(LONGEST_WAIT):
                await turn.wait()
        except trio.Cancelled:
            if turn.is_set():
                self._end()  # its turn came at the same time: pass it on
            raise
        finally:
            self._waiting.pop(number, None)
        if not turn.is_set():
            raise self._refusal()

    def _end(self) -> None:
        now = self._monotonic()
        if self._last_end is not None and self._waiting:
            self._pace += _WEIGHT * (min(now - self._last_end, 1.0) - self._pace)
        self._last_end = now
        self.running -= 1
        while self._waiting and self.running < AT_ONCE:
            _, turn = self._waiting.popitem(last=False)
            self.running += 1
            turn.set()

    def _refusal(self) -> Unavailable:
        self.refused += 1
        self._overload.set()
        now = self._monotonic()
        while self._expected and self._expected[0] <= now:
            heapq.heappop(self._expected)
        # Behind those that rest, not behind all that ever did: some of them were refused again.
        turn = SHARE * min(self._pace, SLOWEST_PACE)
        queue = min(self.waiting * self._pace, LONGEST_WAIT)
        seconds = max(math.ceil(queue + (1 + len(self._expected)) * turn - EARLY), 1)
        if seconds > LONGEST_REST:
            seconds = random.randint(LONGEST_REST // 2, LONGEST_REST)
        heapq.heappush(self._expected, now + seconds)
        return _refusal_for("Too many agents connect at once.", seconds)


def _refusal_for(reason: str, seconds: int) -> Unavailable:
    return Unavailable(reason, f"Connect again in {seconds} s.", headers=[("Retry-After", str(seconds))])
