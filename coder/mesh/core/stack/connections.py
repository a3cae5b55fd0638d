"""All TCP connections of a host, by the addresses and ports their packets carry.

Lives here: the table. Does not live here: which connections enter it (demux.py, interface.py), ephemeral ports
(ports.py).
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.connection import TcpSocket


class ConnectionTable:
    """Every connection that is not CLOSED."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
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

    def remove(self, socket: TcpSocket) -> None:
        """Remove a CLOSED connection. A new one may have its key already (a SYN that ended TIME_WAIT)."""
        if self.by_key.get(socket.key) is socket:
            del self.by_key[socket.key]

    def all(self) -> list[TcpSocket]:
        """Return a copy of all connections: closing a connection changes the table."""
        return list(self.by_key.values())

    def to(self, destination: bytes) -> list[TcpSocket]:
        """Return the connections to a peer address."""
        return [socket for socket in self.by_key.values() if socket.remote == destination]
