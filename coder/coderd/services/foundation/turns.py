"""One timer for many members that each want a turn in the same interval.

A task with a timer for each of ten thousand agents costs more than what they do in their turns.

After a standstill of the process the turns of its whole length are due. Taken at once they would hold the event loop,
and would come together again after every interval: a wake takes at most `HASTE` times its share of the members.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import trio

Member = TypeVar("Member")

PACE = 0.05
"""Seconds, our own value, between two wakes: turns of one moment share a wake."""
HASTE = 2.0
"""Most turns of a wake, our own value, in units of the average."""
FEW = 20
"""Turns, our own value, that a wake may always take."""


class Turns(Generic[Member]):
    """Members that are called every `interval` seconds, the first time one interval after they joined.

    `act` returns whether the member wants another turn. It must neither wait nor raise.
    """

    def __init__(self, interval: float, act: Callable[[Member], bool]) -> None:
        self._interval = interval
        self._act = act
        self._due: deque[tuple[float, Member]] = deque()
        "In the order of time: all wait equally long."
        self._changed = trio.Event()

    def join(self, member: Member) -> None:
        """Give a member turns from now on."""
        self._due.append((trio.current_time() + self._interval, member))
        self._changed.set()

    def __len__(self) -> int:
        return len(self._due)

    async def run(self) -> None:
        """Call members when they are due, for ever."""
        while True:
            if not self._due:
                self._changed = trio.Event()
                await self._changed.wait()
            await trio.sleep_until(self._due[0][0])
            self._take_turns()
            await trio.sleep(PACE)

    def _take_turns(self) -> None:
        now = trio.current_time()
        for _ in range(max(FEW, math.ceil(HASTE * PACE / self._interval * len(self._due)))):
            if not self._due or self._due[0][0] > now:
                break
            _, member = self._due.popleft()
            if self._act(member):
                self._due.append((now + self._interval, member))
