"""Memory of one peer's calls: messages that no handler has taken, and incomplete messages.

A slow handler makes its caller wait; too many incomplete messages end their calls. Calls are in `calls.py`.
"""

from __future__ import annotations

import trio

from coder.rpc.errors import RpcClosed
from coder.rpc.small_channel import SmallChannel

INBOX_MESSAGES = 32
"Messages a handler may lag behind before its stream is no longer read (the coordinator's request buffer)."
INBOX_BYTES = 8 << 20
"Bytes (ours) of these messages; one message of the largest size is always accepted."
LINK_BYTES = 32 << 20
"Bytes (ours) of all incomplete and untaken messages of one peer."


class BufferedBytes:
    """Bytes held by all calls of one peer."""

    def __init__(self) -> None:
        self.size = 0

    def change(self, by: int) -> None:
        """Add `by` bytes. Raises RpcClosed, which ends the requesting call, when there is no room."""
        if by > 0 and self.size + by > LINK_BYTES:
            raise RpcClosed(f"over {LINK_BYTES >> 20} MiB of unfinished messages")
        self.size += by


class Inbox:
    """Messages of one call that its handler has not taken."""

    def __init__(self, buffered: BufferedBytes) -> None:
        self._buffered = buffered
        self._size = 0
        self._changed: trio.Event | None = None
        "Set when messages were taken, for a task that waits for that."
        self._messages = SmallChannel[bytes](INBOX_MESSAGES)

    async def put(self, data: bytes) -> None:
        """Add a message; wait for room. Raises trio.BrokenResourceError when the handler takes no more, RpcClosed."""
        while self._size and self._size + len(data) > INBOX_BYTES:
            if self._changed is None:
                self._changed = trio.Event()
            await self._changed.wait()
        self._count(len(data))
        try:
            await self._messages.send(data)
        except trio.BrokenResourceError:
            self._count(-self._size)
            raise

    async def receive(self) -> bytes:
        """Return the next message. Raises trio.EndOfChannel."""
        data = await self._messages.receive()
        self._count(-len(data))
        return data

    def end(self) -> None:
        """End the input: no more messages will come."""
        self._messages.end()

    def leave(self) -> None:
        """Stop receiving: no more messages will be taken."""
        self._messages.leave()
        self._count(-self._size)

    def _count(self, by: int) -> None:
        self._buffered.change(by)
        self._size += by
        if self._changed is not None:
            self._changed.set()
            self._changed = None
