"""What happened to a tunnel that its surroundings may want to know."""

from __future__ import annotations

from dataclasses import dataclass

from coder.mesh.core.crypto.keys import PublicKey

Source = tuple[str, int] | bytes
"""Where a datagram came from: a UDP address, or bytes naming a relayed sender. Compared, bound into cookies."""


@dataclass(frozen=True, slots=True)
class HandshakeCompleted:
    """Both sides have proven that they hold the new keys."""

    peer: PublicKey


@dataclass(frozen=True, slots=True)
class HandshakeGaveUp:
    """The peer did not answer for 90 s; staged packets are gone."""

    peer: PublicKey


@dataclass(frozen=True, slots=True)
class KeysExpired:
    """No handshake for 540 s: all keys of the tunnel are forgotten."""

    peer: PublicKey


@dataclass(frozen=True, slots=True)
class Roamed:
    """A genuine packet came from another source than the last one. Whether to follow is not decided here."""

    peer: PublicKey
    source: Source


Event = HandshakeCompleted | HandshakeGaveUp | KeysExpired | Roamed
