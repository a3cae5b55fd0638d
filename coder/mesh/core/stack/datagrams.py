"""UDP sockets.

Lives here: queues of datagrams. Does not live here: the port table (interface.py), the wire (wire/udp.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

_MAX_QUEUED = 1024
"""Ours: datagrams; a slow reader loses the newest, as with kernels."""
# Both bounds, as 1024 datagrams may be 64 MB: whoever sends to a port nobody reads is not to choose how much memory
# that takes.
_MAX_BYTES = 1 << 20


class UdpDatagram(NamedTuple):
    """What arrived."""

    source: bytes
    source_port: int
    destination: bytes
    port: int
    payload: bytes


class UdpSocket:
    """A bound port."""

    __slots__ = ("_bytes", "_release", "_send", "address", "closed", "dropped", "on_event", "port", "queue")

    def __init__(
        self,
        address: bytes,
        port: int,
        send: Callable[[bytes, int, bytes, int, bytes], None],
        release: Callable[[UdpSocket], None],
    ) -> None:
        self.address = address
        "Source of what is sent."
        self.port = port
        self.queue: deque[UdpDatagram] = deque()
        self.dropped = 0
        self.closed = False
        self.on_event: Callable[[UdpSocket], None] | None = None
        self._bytes = 0
        self._send = send
        self._release = release

    @property
    def readable(self) -> bool:
        """Whether a datagram waits."""
        return bool(self.queue)

    def send_nowait(self, payload: bytes, destination: bytes, port: int) -> None:
        """Send one datagram; never waits, never fails (UDP)."""
        self._send(self.address, self.port, destination, port, payload)

    def receive_nowait(self) -> UdpDatagram | None:
        """The oldest datagram, or None."""
        if not self.queue:
            return None
        datagram = self.queue.popleft()
        self._bytes -= len(datagram.payload)
        return datagram

    def arrived(self, datagram: UdpDatagram) -> bool:
        """Used by the stack: queue or drop; whether it was queued."""
        if len(self.queue) >= _MAX_QUEUED or self._bytes + len(datagram.payload) > _MAX_BYTES:
            # Nobody is told: UDP promises nothing, and an ICMP error here would be one for a port that does listen
            # (RFC 4443 section 3.1).
            self.dropped += 1
            return False
        self._bytes += len(datagram.payload)
        self.queue.append(datagram)
        return True

    def close(self) -> None:
        """Give the port back."""
        if not self.closed:
            self.closed = True
            # What nobody read is gone with the socket, as with kernels.
            self.queue.clear()
            self._release(self)
