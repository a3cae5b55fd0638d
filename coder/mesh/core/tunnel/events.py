"""Events of a tunnel for its callers."""

from __future__ import annotations

from dataclasses import dataclass

from coder.mesh.core.crypto.keys import PublicKey

Source = tuple[str, int] | bytes
"""Source of a datagram: a UDP address, or bytes identifying a relayed sender. Compared, bound into cookies."""


@dataclass(frozen=True, slots=True)
class HandshakeCompleted:
    """Both sides have proven that they have the new keys."""

    peer: PublicKey


@dataclass(frozen=True, slots=True)
class HandshakeGaveUp:
    """The peer did not answer for 90 s; staged packets were dropped."""

    peer: PublicKey


@dataclass(frozen=True, slots=True)
class KeysExpired:
    """No handshake for 540 s: all keys of the tunnel were zeroed."""

    peer: PublicKey


@dataclass(frozen=True, slots=True)
class Roamed:
    """A genuine packet came from a new source. The endpoint decides whether to follow."""

    peer: PublicKey
    source: Source


Event = HandshakeCompleted | HandshakeGaveUp | KeysExpired | Roamed
