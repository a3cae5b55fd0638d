"""UDP sockets.

Lives here: queues of datagrams. Does not live here: the port table (interface.py), the wire (wire/udp.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

_MAX_QUEUED = 1024
"""Ours: datagrams queued for each socket. A slow reader loses the newest, as with kernels."""
# Both bounds, as 1024 datagrams may be 64 MB: a sender must not choose how much memory a port without a reader takes.
_MAX_BYTES = 1 << 20


class UdpDatagram(NamedTuple):
    """A datagram that arrived."""

    source: bytes
    source_port: int
    destination: bytes
    port: int
    payload: bytes


class UdpSocket:
    """A bound UDP port."""

    __slots__ = ("_bytes", "_release", "_send", "address", "closed", "dropped", "on_event", "port", "queue")

    def __init__(
        self,
        address: bytes,
        port: int,
        send: Callable[[bytes, int, bytes, int, bytes], None],
        release: Callable[[UdpSocket], None],
    ) -> None:
        self.address = address
        "Source address of sent datagrams."
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
        """Return whether a datagram is queued."""
        return bool(self.queue)

    def send_nowait(self, payload: bytes, destination: bytes, port: int) -> None:
        """Send a datagram; never waits, never fails (UDP)."""
        self._send(self.address, self.port, destination, port, payload)

    def receive_nowait(self) -> UdpDatagram | None:
        """Return the oldest datagram, or None."""
        if not self.queue:
            return None
        datagram = self.queue.popleft()
        self._bytes -= len(datagram.payload)
        return datagram

    def arrived(self, datagram: UdpDatagram) -> bool:
        """Queue or drop an arriving datagram; return whether it was queued. Called by the stack."""
        if len(self.queue) >= _MAX_QUEUED or self._bytes + len(datagram.payload) > _MAX_BYTES:
            # A drop is silent: UDP promises nothing, and an ICMP error would claim that the port does not listen
            # (RFC 4443 section 3.1).
            self.dropped += 1
            return False
        self._bytes += len(datagram.payload)
        self.queue.append(datagram)
        return True

    def close(self) -> None:
        """Release the port."""
        if not self.closed:
            self.closed = True
            # Unread datagrams are discarded with the socket, as with kernels.
            self.queue.clear()
            self._release(self)
