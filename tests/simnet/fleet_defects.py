"""Defects that the claims about a simulated fleet must notice, one for each kind of claim."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from coder.coderd.services.network.coordinator import Coordinator
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.tailnet.peers import Peers


def introduce(name: str) -> None:
    """Replace a function of the product by a wrong one, for the rest of this process."""
    DEFECTS[name]()


def _keep_revoked() -> None:
    def cut(_self: Coordinator, _peer: Any) -> None:
        return

    patch.object(Coordinator, "cut", cut).start()


def _remove_lost() -> None:
    """Remove peers whose coordinator is away, as if that ended their tunnels."""

    def expire(self: Peers, peer: Any, _now: float, _last_handshake: Any) -> Any:
        return self.receive_disconnected(peer.id)

    patch.object(Peers, "_expire", expire).start()
    Peers.next_wake.__globals__["LOST_TIMEOUT"] = 3.0


def _lose_first_byte() -> None:
    """Deliver a read without its first byte, once in a while."""
    genuine = TcpSocket.read_nowait
    reads = [0]

    def read(self: TcpSocket, *words: Any) -> Any:
        data = genuine(self, *words)
        reads[0] += 1
        return data[1:] if data and reads[0] % 50 == 0 else data

    patch.object(TcpSocket, "read_nowait", read).start()


DEFECTS = {"revoke": _keep_revoked, "lost": _remove_lost, "bytes": _lose_first_byte}
