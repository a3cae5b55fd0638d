"""A value that changes, and those who follow it: each hears of the latest, however slowly it reads."""

from __future__ import annotations

from typing import Generic, TypeVar

import trio

Value = TypeVar("Value")


class Announced(Generic[Value]):
    """What a node says of itself."""

    def __init__(self, value: Value) -> None:
        self.current = value
        self._watchers: dict[trio.MemorySendChannel[Value], trio.MemoryReceiveChannel[Value]] = {}

    def watch(self) -> trio.MemoryReceiveChannel[Value]:
        """A channel of new values; only the latest unread one is kept."""
        # Named by hand: a type variable is no argument at run time.
        send: trio.MemorySendChannel[Value]
        receive: trio.MemoryReceiveChannel[Value]
        send, receive = trio.open_memory_channel(1)
        self._watchers[send] = receive
        return receive

    def tell(self, value: Value) -> None:
        """The value now; nothing is said when it is the old one."""
        if value == self.current:
            return
        self.current = value
        for send, receive in list(self._watchers.items()):
            try:
                try:
                    send.send_nowait(value)
                except trio.WouldBlock:
                    receive.receive_nowait()  # the reader has not come yet: it gets the newer value instead
                    send.send_nowait(value)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                del self._watchers[send]
                send.close()

    def close(self) -> None:
        """No value will follow."""
        for send in self._watchers:
            send.close()
