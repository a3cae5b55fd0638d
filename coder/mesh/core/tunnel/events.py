"""What happened to a tunnel that its surroundings may want to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coder.mesh.core.tunnel.peer import Tunnel

Source = tuple[str, int] | bytes
"""Where a datagram came from: a UDP address, or bytes naming a relayed sender. Compared, bound into cookies."""


@dataclass(frozen=True, slots=True)
class HandshakeCompleted:
    """Both sides have proven that they hold the new keys."""

    tunnel: Tunnel


@dataclass(frozen=True, slots=True)
class HandshakeGaveUp:
    """The peer did not answer for 90 s; staged packets are gone."""

    tunnel: Tunnel


@dataclass(frozen=True, slots=True)
class KeysExpired:
    """No handshake for 540 s: all keys of the tunnel are forgotten."""

    tunnel: Tunnel


@dataclass(frozen=True, slots=True)
class Roamed:
    """A genuine packet came from another source than the last one. Whether to follow is not decided here."""

    tunnel: Tunnel
    source: Source


Event = HandshakeCompleted | HandshakeGaveUp | KeysExpired | Roamed
