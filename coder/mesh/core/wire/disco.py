"""Disco: the sealed messages by which peers find a direct path to each other.

Lives here: the packet envelope, ping, pong, call-me-maybe.
Does not live here: when to ping and which messages to accept (paths/).
Obeys: docs/protocol/disco.md; tests/data/wire/disco.json. Pings and pongs are padded: the genuine ones to 1310-byte
datagrams, so that a path too narrow for a full WireGuard packet fails here instead of later; other sizes are ours, and
measure the path MTU (paths/mtu.py). Parsers everywhere accept padding of any length.
"""

from __future__ import annotations

from dataclasses import dataclass

from coder.mesh.core.crypto.box import NONCE_SIZE, OVERHEAD, SharedBox
from coder.mesh.core.crypto.keys import KEY_SIZE, PublicKey
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.wire.address import UdpAddress, endpoint_of_bytes

# "TS" and U+1F4AC. No WireGuard message and no STUN message begins so (their first byte is 1 to 4, or below 0x40 with a
# cookie), hence one socket serves all three.
MAGIC = b"TS\xf0\x9f\x92\xac"
TX_ID_SIZE = 12
# 1310 bytes on the wire with the envelope below: two less than the transport packet around a full inner packet of 1280,
# and the size that every other node sends (docs/protocol/disco.md#messages).
PADDED_PAYLOAD = 1230
"""Payload size of pings and pongs, without the two bytes of type and version."""

TYPE_PING = 1
TYPE_PONG = 2
TYPE_CALL_ME_MAYBE = 3

# Version of pings and pongs since they are padded. Readers ignore it: padding is behind the fields either way.
_PADDED_VERSION = 1
# Compared, unlike the version above: a later list may have entries of another size.
_CALL_VERSION = 0
# Sixteen bytes of address, IPv4 mapped into IPv6, and a port: one layout for both families.
_ENDPOINT_SIZE = 18
MAX_ENDPOINTS = 100
"""Ours: entries of a call-me-maybe that are read. No machine has more addresses, and a relay's largest frame holds
3,600, which take longer to read than a hundred packets."""
_KEY_AT = len(MAGIC)
_NONCE_AT = _KEY_AT + KEY_SIZE
_BOX_AT = _NONCE_AT + NONCE_SIZE
ENVELOPE = _BOX_AT + OVERHEAD + 2
"""Bytes of a datagram around a ping's payload: mark, key, nonce, tag, type and version."""
# Form of an absent key. The point zero belongs to no peer: no private key has it as its public key.
_NO_KEY = PublicKey(bytes(KEY_SIZE))


@dataclass(frozen=True, slots=True)
class DiscoPing:
    """Request of a DiscoPong, sent to the ping's source."""

    tx_id: bytes
    "12 bytes, random."
    node_key: PublicKey = _NO_KEY
    # The disco key belongs to a process, the node key to a machine: among several peers with one disco key it selects
    # the peer.
    "The sender's WireGuard key; zero when absent."
    payload: int = PADDED_PAYLOAD
    "Bytes of payload, padding included."

    @property
    def size(self) -> int:
        """Return the bytes of the datagram."""
        return ENVELOPE + self.payload

    def encode(self) -> bytes:
        """Return type, version, payload."""
        return bytes((TYPE_PING, _PADDED_VERSION)) + (self.tx_id + self.node_key).ljust(self.payload, b"\0")


@dataclass(frozen=True, slots=True)
class DiscoPong:
    """Answer to a ping, with its source address as the sender sees it."""

    tx_id: bytes
    # Only this number ties a pong to a ping; see `OutstandingPings`.
    "Transaction of the ping."
    source: UdpAddress
    # Sent and not used: our own addresses come from STUN (paths/netcheck.py), which peers cannot influence.
    "Source address of the ping; 127.3.3.40:<region> when by relay."
    payload: int = PADDED_PAYLOAD
    "Bytes of payload, padding included: as many as the ping had."

    def encode(self) -> bytes:
        """Return type, version, payload."""
        return bytes((TYPE_PONG, _PADDED_VERSION)) + (self.tx_id + self.source.wire).ljust(self.payload, b"\0")


@dataclass(frozen=True, slots=True)
class CallMeMaybe:
    """Request to ping the sender at these addresses now: sent by relay while its own pings open the way."""

    endpoints: tuple[UdpAddress, ...] = ()
    # The receiver pings all of them together, up to a bound (paths/candidates.py); their order has no other effect.
    "Empty makes the peer forget earlier addresses."

    def encode(self) -> bytes:
        """Return type, version, payload."""
        return bytes((TYPE_CALL_ME_MAYBE, _CALL_VERSION)) + b"".join(e.wire for e in self.endpoints)


Message = DiscoPing | DiscoPong | CallMeMaybe


def is_disco(datagram: bytes) -> bool:
    """Return whether a datagram starts like a disco packet and is long enough to be one."""
    # The length is checked as well, so that later code may slice without a check. A shorter one is WireGuard's to drop.
    return datagram.startswith(MAGIC) and len(datagram) >= _BOX_AT + OVERHEAD


def sender_untrusted(datagram: bytes) -> PublicKey:
    """Return the claimed disco key of the sender. Raises WireError when it is no disco packet."""
    if not is_disco(datagram):
        raise WireError("not_disco")
    return PublicKey(bytes(datagram[_KEY_AT:_NONCE_AT]))


def seal(box: SharedBox, sender: PublicKey, nonce: bytes, message: Message) -> bytes:
    """Return a whole packet.

    `nonce` is 24 random bytes, `box` is between the sender's and the receiver's disco keys.
    """
    # Random nonces: 24 bytes never repeat by chance, so no counter has to survive restarts (Bernstein's reason for
    # XSalsa20).
    return MAGIC + sender + nonce + box.seal(nonce, message.encode())


def open_untrusted(box: SharedBox, datagram: bytes) -> Message:
    """Return the message of a packet from the box's peer. Raises WireError when forged or malformed."""
    if not is_disco(datagram):
        raise WireError("not_disco")
    try:
        # A box opens as often as it is sent: a replayed ping makes its receiver answer to another address once more.
        # That does no harm, as data is authenticated by its own keys only.
        clear = box.open_untrusted(bytes(datagram[_NONCE_AT:_BOX_AT]), bytes(datagram[_BOX_AT:]))
    except CryptoError as error:
        raise WireError("forged") from error
    return parse_untrusted(clear)


def parse_untrusted(clear: bytes) -> Message:
    """Return the message in an opened box. Raises WireError when short or of unknown type.

    Trailing bytes are padding.
    """
    if len(clear) < 2:
        raise WireError("short_message")
    # Both bytes are inside the box: no observer on the path can turn a ping into a pong.
    kind, version, body = clear[0], clear[1], clear[2:]
    if kind == TYPE_PING:
        if len(body) < TX_ID_SIZE:
            raise WireError("short_message")
        # May be missing (docs/protocol/disco.md#messages): then the disco key alone identifies the peer.
        key = body[TX_ID_SIZE : TX_ID_SIZE + KEY_SIZE]
        return DiscoPing(body[:TX_ID_SIZE], PublicKey(key) if len(key) == KEY_SIZE else _NO_KEY, len(body))
    if kind == TYPE_PONG:
        if len(body) < TX_ID_SIZE + _ENDPOINT_SIZE:
            raise WireError("short_message")
        # The length shows how much came through in this direction: the receiver's probe of the path MTU (paths/mtu.py).
        return DiscoPong(body[:TX_ID_SIZE], _endpoint(body, TX_ID_SIZE), len(body))
    if kind == TYPE_CALL_ME_MAYBE:
        # A list that is not a whole number of entries, or of a later version, counts as empty.
        if version != _CALL_VERSION or len(body) % _ENDPOINT_SIZE:
            return CallMeMaybe()
        read = min(len(body), MAX_ENDPOINTS * _ENDPOINT_SIZE)
        return CallMeMaybe(tuple(_endpoint(body, at) for at in range(0, read, _ENDPOINT_SIZE)))
    # The caller drops it: types of later versions are ignored (docs/protocol/disco.md#messages).
    raise WireError("unknown_type", f"unknown message type 0x{kind:02x}")


def _endpoint(body: bytes, at: int) -> UdpAddress:
    return endpoint_of_bytes(body[at : at + 16], int.from_bytes(body[at + 16 : at + _ENDPOINT_SIZE], "big"))
