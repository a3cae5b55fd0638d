"""The four messages of WireGuard.

Lives here: layout, sizes, the location of the MACs.
Does not live here: any cryptography (crypto/), the hot path's own reading of transport headers (tunnel/keypairs.py,
which uses TRANSPORT_HEADER directly: a value per packet would cost more than the rest of the loop).
Obeys: the WireGuard paper, section 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from coder.mesh.core.errors import WireError

TYPE_INITIATION = 1
TYPE_RESPONSE = 2
TYPE_COOKIE_REPLY = 3
TYPE_TRANSPORT = 4

# Fixed sizes, all different: with the first word they distinguish every message from garbage before a hash is computed.
INITIATION_SIZE = 148
RESPONSE_SIZE = 92
COOKIE_REPLY_SIZE = 64
TRANSPORT_HEADER_SIZE = 16
# Sixteen of header, sixteen of Poly1305 tag.
TRANSPORT_OVERHEAD = 32
"""Bytes a transport datagram is longer than its padded plaintext; also the size of a keepalive."""

# Little endian, unlike nearly everything else on the network (paper, section 5.4).
TRANSPORT_HEADER = Struct("<IIQ")
"""Type (with the three reserved zero bytes), receiver index, counter."""

_INITIATION = Struct("<II32s48s28s16s16s")
_RESPONSE = Struct("<III32s16s16s16s")
_COOKIE_REPLY = Struct("<II24s32s")
_TYPE = Struct("<I")
# mac1 and mac2, sixteen bytes each, are the tail of both handshake messages; mac2 covers mac1 (paper, section 5.4.4).
_MACS = 32
_MAC = 16


@dataclass(frozen=True, slots=True)
class Initiation:
    """The first handshake message."""

    sender: int
    # Random and valid for one session: an observer on the path sees which datagrams belong together, not whose they
    # are.
    "Index for the answer to the sender."
    ephemeral: bytes
    static: bytes
    timestamp: bytes
    mac1: bytes = bytes(_MAC)
    mac2: bytes = bytes(_MAC)

    def encode_unsigned(self) -> bytes:
        """Return the message up to mac1: the input of the MACs."""
        return self.encode()[:-_MACS]

    def encode(self) -> bytes:
        """Return all 148 bytes."""
        return _INITIATION.pack(
            TYPE_INITIATION, self.sender, self.ephemeral, self.static, self.timestamp, self.mac1, self.mac2
        )


@dataclass(frozen=True, slots=True)
class HandshakeResponse:
    """The second handshake message."""

    sender: int
    receiver: int
    ephemeral: bytes
    empty: bytes
    mac1: bytes = bytes(_MAC)
    mac2: bytes = bytes(_MAC)

    def encode_unsigned(self) -> bytes:
        """Return the message up to mac1."""
        return self.encode()[:-_MACS]

    def encode(self) -> bytes:
        """Return all 92 bytes."""
        return _RESPONSE.pack(
            TYPE_RESPONSE, self.sender, self.receiver, self.ephemeral, self.empty, self.mac1, self.mac2
        )


@dataclass(frozen=True, slots=True)
class CookieReply:
    """Answer of a busy responder instead of a response."""

    receiver: int
    nonce: bytes
    cookie: bytes
    # Sixteen of cookie, sixteen of tag. The whole reply is smaller than either message that causes it: no
    # amplification.
    "The cookie, encrypted, 32 bytes."

    def encode(self) -> bytes:
        """Return all 64 bytes."""
        return _COOKIE_REPLY.pack(TYPE_COOKIE_REPLY, self.receiver, self.nonce, self.cookie)


@dataclass(frozen=True, slots=True)
class Transport:
    """Encrypted data, or a keepalive when the plaintext is empty."""

    receiver: int
    counter: int
    ciphertext: bytes
    # Sixteen are a keepalive: an empty text, sealed.
    "Padded plaintext and tag, at least 16 bytes."

    def encode(self) -> bytes:
        """Return the datagram."""
        return TRANSPORT_HEADER.pack(TYPE_TRANSPORT, self.receiver, self.counter) + self.ciphertext


Message = Initiation | HandshakeResponse | CookieReply | Transport


def parse_untrusted(datagram: bytes) -> Message:
    """Parse any of the four messages. Raises WireError when the type is unknown or the size is not the type's."""
    size = len(datagram)
    # The first word. For longer ones the exact size identifies garbage, below.
    if size < 4:
        raise WireError("short_datagram")
    # The paper has one byte of type and three reserved zeros; read as one little-endian word they are checked together.
    (kind,) = _TYPE.unpack_from(datagram)
    # No upper bound: a UDP payload has one, and a relay's frame.
    if kind == TYPE_TRANSPORT and size >= TRANSPORT_OVERHEAD:
        _, receiver, counter = TRANSPORT_HEADER.unpack_from(datagram)
        return Transport(receiver, counter, bytes(datagram[TRANSPORT_HEADER_SIZE:]))
    if kind == TYPE_INITIATION and size == INITIATION_SIZE:
        return Initiation(*_INITIATION.unpack(datagram)[1:])
    if kind == TYPE_RESPONSE and size == RESPONSE_SIZE:
        return HandshakeResponse(*_RESPONSE.unpack(datagram)[1:])
    if kind == TYPE_COOKIE_REPLY and size == COOKIE_REPLY_SIZE:
        return CookieReply(*_COOKIE_REPLY.unpack(datagram)[1:])
    known = kind in (TYPE_INITIATION, TYPE_RESPONSE, TYPE_COOKIE_REPLY, TYPE_TRANSPORT)
    # Both are only counted. The paper (section 5.1) has a peer stay silent to unauthenticated messages. Distinguished
    # for debugging; the device counts both alike.
    raise WireError("bad_size" if known else "unknown_type")


def split_macs(datagram: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return (covered by mac1, mac1, covered by mac2, mac2) of an initiation or a response."""
    return datagram[:-_MACS], datagram[-_MACS:-_MAC], datagram[:-_MAC], datagram[-_MAC:]
