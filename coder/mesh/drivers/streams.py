"""Overlay connections as trio streams.

Lives here: waiting. Sockets of the stack never wait; here tasks sleep until the stack's callback reports a change. Only
application tasks are woken, and only those that can continue.
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from trio.lowlevel import checkpoint, checkpoint_if_cancelled, current_task, reschedule, wait_task_rescheduled

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.tcp.connection import TcpSocket, TcpStats
from coder.mesh.errors import UnreachableError

WRITE_SLICE = 256 * 1024
"""Bytes handed to the stack per call; it would cut larger writes, which copies."""
READ_LIMIT = 1 << 20
YIELD_BYTES = 64 * 1024
CALL_BYTES = 4096
"""Weight of a call without payload; see `TcpStream._is_due`."""


class TcpStream(trio.abc.HalfCloseableStream):
    """A connection to or from a peer."""

    def __init__(self, socket: TcpSocket, kick: Callable[[], None]) -> None:
        self._socket = socket
        self._kick = kick
        self._reader: trio.lowlevel.Task | None = None
        """The task that waits for bytes. Not a parking lot: that costs as much as all the rest of a wake-up."""
        self._changed_write = trio.lowlevel.ParkingLot()
        self._is_sending = False
        self._is_receiving = False
        self._is_closed = False
        self._worked = 0
        socket.on_event = self._on_event

    def __repr__(self) -> str:
        return f"<TcpStream {self._socket!r}>"

    @property
    def stats(self) -> TcpStats:
        """Statistics of the connection."""
        return self._socket.stats

    @property
    def remote(self) -> tuple[bytes, int]:
        """Return (16-byte overlay address, port) of the peer."""
        return self._socket.remote, self._socket.remote_port

    @property
    def local_port(self) -> int:
        """Our port."""
        return self._socket.local_port

    @property
    def unacknowledged(self) -> int:
        """Bytes written that the peer has not acknowledged."""
        return self._socket.unsent + self._socket.unacked

    def set_keepalive(self, idle: float | None, interval: float = 75.0, probes: int = 9) -> None:
        """Probe a silent peer; None disables it."""
        self._socket.set_keepalive(idle, interval, probes)
        self._kick()

    def _on_event(self, socket: TcpSocket) -> None:
        task = self._reader
        if task is not None and socket.readable:
            self._reader = None
            reschedule(task)
        if self._changed_write and socket.writable:
            self._changed_write.unpark_all()

    def _wake_reader(self) -> None:
        task, self._reader = self._reader, None
        if task is not None:
            reschedule(task)

    def _abandon_reading(self, _: Callable[[], None]) -> trio.lowlevel.Abort:
        self._reader = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _is_due(self, size: int) -> bool:
        """Return whether other tasks should get their turn: a checkpoint yields only after some work was done.

        A full one is a round of the scheduler, 10 us: a third of a keystroke's cost on each side.
        """
        self._worked += size + CALL_BYTES
        if self._worked < YIELD_BYTES:
            return False
        self._worked = 0
        return True

    async def wait_connected(self) -> None:
        """Wait until the handshake is done. Raises UnreachableError when it fails."""
        socket = self._socket
        while not socket.connected:
            if socket.error is not None or socket.closed:
                raise UnreachableError(str(socket.error or "the connection was closed")) from socket.error
            await self._changed_write.park()

    # -- sending ----------------------------------------------------------------------------------------------------
    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Queue all bytes; waits while the send buffer is full."""
        if self._is_sending:
            raise trio.BusyResourceError("another task is sending")
        self._is_sending = True
        try:
            if self._is_due(len(data)):
                await checkpoint()
            else:
                await checkpoint_if_cancelled()
            if len(data) <= WRITE_SLICE:
                piece = data if type(data) is bytes else bytes(data)
                taken = self._put(piece)
                if taken < len(piece):
                    await self._put_rest(piece, taken)
                return
            view = memoryview(data)
            for at in range(0, len(view), WRITE_SLICE):
                piece = bytes(view[at : at + WRITE_SLICE])
                await self._put_rest(piece, self._put(piece))
        finally:
            self._is_sending = False

    async def _put_rest(self, data: bytes, taken: int) -> None:
        """Queue the bytes that the stack has not accepted yet."""
        while taken < len(data):
            data = data[taken:]
            if not self._socket.writable:
                self._socket.await_writable()
                await self._changed_write.park()
            taken = self._put(data)

    def _put(self, data: bytes) -> int:
        """Hand over as much as there is room for; return the bytes. Nearly always that is all of it."""
        if self._is_closed:
            raise trio.ClosedResourceError
        try:
            taken = self._socket.write_nowait(data) if data else 0
        except StackError as error:
            raise trio.BrokenResourceError(error.message) from error
        if taken:
            self._kick()
        return taken

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the send buffer has room."""
        await trio.lowlevel.checkpoint()
        self._check_open()
        while not self._socket.writable:
            self._socket.await_writable()
            await self._changed_write.park()
            self._check_open()

    async def send_eof(self) -> None:
        """Finish our direction."""
        await trio.lowlevel.checkpoint()
        if self._is_sending:
            raise trio.BusyResourceError("another task is sending")
        self._check_open()
        self._socket.shutdown_write()
        self._kick()

    # -- receiving --------------------------------------------------------------------------------------------------
    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes; empty at the end."""
        if self._is_receiving:
            raise trio.BusyResourceError("another task is receiving")
        self._is_receiving = True
        try:
            socket = self._socket
            if socket.readable:
                if self._is_due(socket.unread):
                    await checkpoint()
                else:
                    await checkpoint_if_cancelled()
            while True:
                if self._is_closed:
                    raise trio.ClosedResourceError
                if not (socket.readable or socket.closed):
                    self._reader = current_task()
                    await wait_task_rescheduled(self._abandon_reading)
                    continue
                try:
                    data = socket.read_nowait(READ_LIMIT if max_bytes is None else max_bytes)
                except StackError as error:
                    raise trio.BrokenResourceError(error.message) from error
                if data and socket.acks_pending:  # reading opened the window wide enough for an update
                    self._kick()
                return data  # empty: the end
        finally:
            self._is_receiving = False

    # -- closing ----------------------------------------------------------------------------------------------------
    def _check_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError

    async def aclose(self) -> None:
        """Close; queued data is still delivered, as long as the peer takes it."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """`aclose` without the checkpoint."""
        if self._is_closed:
            return
        self._is_closed = True
        self._socket.close()
        self._wake()

    def abort(self) -> None:
        """Reset the connection."""
        self._is_closed = True
        self._socket.abort()
        self._wake()

    def _wake(self) -> None:
        self._wake_reader()
        self._changed_write.unpark_all()
        self._kick()
