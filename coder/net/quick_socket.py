"""A connected socket read and written by system calls of our own, where trio's own methods would take extra turns.

trio tries to read before it waits, and lets other tasks run after each write. On a link with few small messages the
first fails nearly always, and the second is a turn of the scheduler for each of them.
"""

from __future__ import annotations

import os

import trio


class QuickSocket:
    """Socket of a stream. Nothing else may write to the stream while `write_now` is used."""

    def __init__(self, socket: trio.socket.SocketType) -> None:
        self._socket = socket

    @staticmethod
    def of(stream: trio.abc.Stream) -> QuickSocket | None:
        """Return the socket of a plain stream; None where there is none (TLS, Windows)."""
        return QuickSocket(stream.socket) if os.name == "posix" and isinstance(stream, trio.SocketStream) else None

    def write_now(self, data: bytes) -> int:
        """Return how many bytes the socket took. Raises OSError when it is broken or closed."""
        try:
            return os.write(self._socket.fileno(), data)
        except BlockingIOError:
            return 0

    async def read(self, size: int) -> bytes:
        """Wait for bytes, b"" at the end. Raises trio.BrokenResourceError, trio.ClosedResourceError."""
        while True:
            if self._socket.fileno() < 0:
                raise trio.ClosedResourceError("the socket was closed here")
            await trio.lowlevel.wait_readable(self._socket.fileno())
            try:
                return os.read(self._socket.fileno(), size)
            except BlockingIOError:
                continue  # woken for nothing
            except OSError as error:
                raise trio.BrokenResourceError(str(error)) from error
