"""What one peer's calls keep in memory: messages nobody has taken yet, and those that have begun and not ended.

A handler that is slow makes its caller wait; many unfinished messages at once are ended. Calls are `calls.py`.
"""

from __future__ import annotations

import trio

from coder.rpc.errors import RpcClosed

MESSAGES = 32
"Messages a handler may lag behind before its stream stops being read (the coordinator's request buffer)."
INBOX_BYTES = 8 << 20
"Ours: bytes of them; one message of the largest size always finds room."
LINK_BYTES = 32 << 20
"Ours: what all calls of one peer keep of messages that have not ended or were not taken yet."


class HeldBytes:
    """What one peer's calls keep together."""

    def __init__(self) -> None:
        self.size = 0

    def change(self, by: int) -> None:
        """Raises RpcClosed, which ends the call that asked for more, when there is no room."""
        if by > 0 and self.size + by > LINK_BYTES:
            raise RpcClosed(f"over {LINK_BYTES >> 20} MiB of unfinished messages")
        self.size += by


class Inbox:
    """Messages of one call that its handler has not taken."""

    def __init__(self, held: HeldBytes) -> None:
        self._held = held
        self._size = 0
        self._changed = trio.Event()
        self._send, self._receive = trio.open_memory_channel[bytes](MESSAGES)

    async def put(self, data: bytes) -> None:
        """Waits for room. Raises trio.BrokenResourceError when the handler takes no more, RpcClosed."""
        while self._size and self._size + len(data) > INBOX_BYTES:
            await self._changed.wait()
        self._count(len(data))
        try:
            await self._send.send(data)
        except trio.BrokenResourceError:
            self._count(-self._size)
            raise

    async def receive(self) -> bytes:
        """Raises trio.EndOfChannel."""
        data = await self._receive.receive()
        self._count(-len(data))
        return data

    def end(self) -> None:
        """No more will come."""
        self._send.close()

    def leave(self) -> None:
        """No more will be taken."""
        self._receive.close()
        self._count(-self._size)

    def _count(self, by: int) -> None:
        self._held.change(by)
        self._size += by
        self._changed.set()
        self._changed = trio.Event()
