"""Bounded channel to one receiver that is small while it is empty.

trio's memory channel has seven objects of 2.3 KB together, and a server has three for each of thousands of agents.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import trio

Value = TypeVar("Value")


class SmallChannel(Generic[Value]):
    """Values for one receiver at a time. The methods' exceptions are those of trio's memory channels."""

    __slots__ = ("_capacity", "_has_ended", "_has_left", "_receiver", "_senders", "_values")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: deque[Value] | None = None
        self._receiver: trio.lowlevel.Task | None = None
        "Task that waits in `receive`."
        self._senders: trio.lowlevel.ParkingLot | None = None
        "Tasks that wait in `send`."
        self._has_ended = self._has_left = False

    def __len__(self) -> int:
        return 0 if self._values is None else len(self._values)

    def send_nowait(self, value: Value) -> None:
        """Raises trio.WouldBlock when the channel is full, trio.BrokenResourceError when the receiver has left, and
        trio.ClosedResourceError after `end`."""
        if self._has_ended:
            raise trio.ClosedResourceError
        if self._has_left:
            raise trio.BrokenResourceError
        if len(self) >= self._capacity:
            raise trio.WouldBlock
        if self._values is None:
            self._values = deque()
        self._values.append(value)
        self._wake_receiver()

    async def send(self, value: Value) -> None:
        """Wait for room. Raises as `send_nowait` does."""
        await trio.lowlevel.checkpoint()
        while True:
            try:
                self.send_nowait(value)
            except trio.WouldBlock:
                if self._senders is None:
                    self._senders = trio.lowlevel.ParkingLot()
                await self._senders.park()
            else:
                return

    async def receive(self) -> Value:
        """Return the next value. Raises trio.EndOfChannel after the last one."""
        if self._values or self._has_ended:
            await trio.lowlevel.checkpoint()
        while not self._values:
            if self._has_ended:
                raise trio.EndOfChannel
            await self._wait()
        value = self._values.popleft()
        if not self._values:
            self._values = None  # a deque has 600 bytes
        self._wake_senders()
        return value

    def end(self) -> None:
        """End the values: those that were sent are received before trio.EndOfChannel."""
        self._has_ended = True
        self._wake_receiver()
        self._wake_senders()

    close = end

    def leave(self) -> None:
        """Receive no more; drop what was sent."""
        self._has_left, self._values = True, None
        self._wake_senders()

    async def _wait(self) -> None:
        if self._receiver is not None:
            raise trio.BusyResourceError("another task receives from this channel")
        self._receiver = trio.lowlevel.current_task()

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            self._receiver = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _wake_receiver(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            trio.lowlevel.reschedule(receiver)

    def _wake_senders(self) -> None:
        if self._senders is not None:
            self._senders.unpark_all()
            self._senders = None
