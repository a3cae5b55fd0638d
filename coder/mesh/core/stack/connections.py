"""All TCP connections of a host, by the addresses and ports their packets carry.

Lives here: the table. Does not live here: which connections enter it (demux.py, interface.py), ephemeral ports
(ports.py).
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.fair_shares import FairShares


class ConnectionTable:
    """Every connection that is not CLOSED."""

    __slots__ = ("_passive", "_waiting", "by_key")

    def __init__(self, limit: int) -> None:
        """`limit`: connections that peers opened, and connections in TIME_WAIT; peers share each number."""
        self._passive: FairShares[TcpSocket] = FairShares(limit)
        self._waiting: FairShares[TcpSocket] = FairShares(limit)
        self.by_key: dict[bytes, TcpSocket] = {}
        "Keys laid out as in arriving packets: see `TcpSocket.key`. Only this class changes the dictionary."

    def __len__(self) -> int:
        return len(self.by_key)

    @staticmethod
    def key(remote: bytes, local: bytes, remote_port: int, local_port: int) -> bytes:
        """Return the 36 bytes in front of the sequence number of an arriving packet."""
        return remote + local + remote_port.to_bytes(2, "big") + local_port.to_bytes(2, "big")

    def add(self, socket: TcpSocket) -> None:
        """Add a connection."""
        self.by_key[socket.key] = socket

    def make_room(self, peer: bytes) -> bool:
        """Return whether the peer may open one more connection; a peer with more than its share may lose its oldest.

        A peer can open four thousand million connections to one address. Each costs memory, and a forwarded one a
        descriptor, which other peers need.
        """
        if not self._passive.is_full:
            return True
        victim = self._passive.evictable_for(peer)
        if victim is None:
            return False
        victim.abort()
        return True

    def add_passive(self, socket: TcpSocket) -> None:
        """Add a connection that its peer opened; `make_room` returned True."""
        self.add(socket)
        self._passive.add(socket.remote, socket)

    def waits(self, socket: TcpSocket) -> None:
        """Note that a connection is in TIME_WAIT. The oldest of a peer with many is forgotten, as kernels do it.

        Closed connections must not keep a peer from opening new ones.
        """
        self._passive.discard(socket.remote, socket)
        waiting = self._waiting
        if waiting.is_full and not waiting.has(socket.remote, socket):
            victim = waiting.evictable_for(socket.remote) or waiting.oldest_of(socket.remote)
            if victim is None or victim is socket:
                return
            victim.fail(None)
        waiting.add(socket.remote, socket)

    def remove(self, socket: TcpSocket) -> None:
        """Remove a CLOSED connection. A new one may have its key already (a SYN that ended TIME_WAIT)."""
        self._passive.discard(socket.remote, socket)
        self._waiting.discard(socket.remote, socket)
        if self.by_key.get(socket.key) is socket:
            del self.by_key[socket.key]

    def all(self) -> list[TcpSocket]:
        """Return a copy of all connections: closing a connection changes the table."""
        return list(self.by_key.values())

    def to(self, destination: bytes) -> list[TcpSocket]:
        """Return the connections to a peer address."""
        return [socket for socket in self.by_key.values() if socket.remote == destination]
