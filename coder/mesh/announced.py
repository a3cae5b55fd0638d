"""A changing value with subscribers: each gets the latest, however slowly it reads."""

from __future__ import annotations

from typing import Generic, TypeVar

import trio

Value = TypeVar("Value")


class PublishedValue(Generic[Value]):
    """A published value of a node."""

    def __init__(self, value: Value) -> None:
        self.current = value
        self._watchers: dict[trio.MemorySendChannel[Value], trio.MemoryReceiveChannel[Value]] = {}

    def watch(self) -> trio.MemoryReceiveChannel[Value]:
        """Return a channel of new values; only the latest unread one is kept."""
        # Named explicitly: a type variable is no argument at run time.
        send: trio.MemorySendChannel[Value]
        receive: trio.MemoryReceiveChannel[Value]
        send, receive = trio.open_memory_channel(1)
        self._watchers[send] = receive
        return receive

    def publish(self, value: Value) -> None:
        """Publish the value; an unchanged value is not published."""
        if value == self.current:
            return
        self.current = value
        for send, receive in list(self._watchers.items()):
            try:
                try:
                    send.send_nowait(value)
                except trio.WouldBlock:
                    receive.receive_nowait()  # the reader has not read yet: it gets the newer value instead
                    send.send_nowait(value)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                del self._watchers[send]
                send.close()

    def close(self) -> None:
        """Close the channels: no value will follow."""
        for send in self._watchers:
            send.close()
