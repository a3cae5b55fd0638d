"""Socket of a relay connection with its TLS, read and written by system calls of our own.

trio's streams cost a relay more than its packets do: a write of one TLS record is a turn of the event loop, two locks
and four context managers. Here a reader of one client writes what it has read to the socket of another one at once.
Only a socket that takes no more bytes is waited for.
"""

from __future__ import annotations

import os
import ssl

import trio

from coder.mesh.drivers.framing import READ_SIZE, RECORD_SIZE

_scratch = memoryview(bytearray(READ_SIZE))
"""Where reads arrive; copied before the next one, as nothing here waits between the two."""


class RelayLink:
    """Connected socket, after all handshakes. Its stream is closed by the owner, and not read or written any more."""

    __slots__ = ("_ended", "_fresh", "_incoming", "_outgoing", "_socket", "_ssl", "_unsent")

    def __init__(self, sock: trio.socket.SocketType, tls: trio.SSLStream[trio.SocketStream] | None = None) -> None:
        self._socket = sock
        self._ssl = tls._ssl_object if tls is not None else None
        self._incoming = tls._incoming if tls is not None else ssl.MemoryBIO()
        self._outgoing = tls._outgoing if tls is not None else ssl.MemoryBIO()
        self._fresh = tls is not None
        """Whether the stream may have received more than it has returned."""
        self._ended = False
        self._unsent = memoryview(b"")

    @staticmethod
    def of(stream: trio.abc.Stream) -> RelayLink | None:
        """Return the link of a stream; None where its bytes pass through anything but a socket and TLS."""
        if os.name != "posix":
            return None
        if isinstance(stream, trio.SSLStream):
            plain = stream.transport_stream
            is_ready = stream._delayed_outgoing is None and not stream._outgoing.pending
            return RelayLink(plain.socket, stream) if isinstance(plain, trio.SocketStream) and is_ready else None
        return RelayLink(stream.socket) if isinstance(stream, trio.SocketStream) else None

    @property
    def is_full(self) -> bool:
        """Whether bytes wait until the socket takes them; `drain` sends them."""
        return bool(self._unsent)

    async def read_into(self, buffer: bytearray, limit: int) -> bool:
        """Append what has arrived, about `limit` bytes at most; return False at the end of the stream.

        Raises OSError, trio.ClosedResourceError.
        """
        if self._ssl is not None and self._fresh:
            self._fresh = False
            if self._decrypt(self._ssl, buffer):
                await trio.lowlevel.checkpoint()
                return True
        while not self._ended:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                size = os.readv(self._socket.fileno(), [_scratch[:limit]])
            except BlockingIOError:
                continue  # woken for nothing
            if not size:
                return False
            if self._ssl is None:
                buffer += _scratch[:size]
                return True
            self._incoming.write(_scratch[:size])
            if self._decrypt(self._ssl, buffer):
                return True
        return False

    def _decrypt(self, tls: ssl.SSLObject, buffer: bytearray) -> bool:
        """Append the whole records that have arrived; return whether there were any."""
        before = len(buffer)
        try:
            while data := tls.read(RECORD_SIZE):
                buffer += data
                if not self._incoming.pending:
                    break
            else:
                self._ended = True
        except ssl.SSLWantReadError:
            pass  # the rest of a record has not arrived
        except ssl.SSLError:
            self._ended = True  # after what was sound
        return len(buffer) > before

    def write_now(self, data: bytes) -> bool:
        """Write; return whether the socket took everything. If not, `drain` before the next write.

        Raises OSError (an ssl.SSLError is one) when the connection is broken.
        """
        if self._ssl is not None:
            self._ssl.write(data)
            data = self._outgoing.read()
        try:
            sent = os.write(self._socket.fileno(), data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return True
        self._unsent = memoryview(data)[sent:]
        return False

    async def send_all(self, data: bytes) -> None:
        """Write everything, letting other tasks run. Raises OSError, trio.ClosedResourceError."""
        await self.drain()
        if self.write_now(data):
            await trio.lowlevel.checkpoint()
        else:
            await self.drain()

    async def drain(self) -> None:
        """Wait until the socket has taken all bytes. Raises OSError, trio.ClosedResourceError."""
        while self._unsent:
            await trio.lowlevel.wait_writable(self._socket)
            try:
                self._unsent = self._unsent[os.write(self._socket.fileno(), self._unsent) :]
            except BlockingIOError:
                continue
