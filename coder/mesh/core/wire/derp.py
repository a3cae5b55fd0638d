"""DERP frames: the messages between relays and their clients.

Lives here: each frame as a value that encodes itself.
Does not live here: frames from a stream (derp_reader.py), the content of sealed infos (derp_info.py), connections,
queues, routes (drivers/derp_client.py, drivers/derp_server.py).
Obeys: docs/protocol/derp.md; tests/data/wire/derp.json. A relay moves SendPacket and RecvPacket frames by slicing their
bodies; values are for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from coder.mesh.core.crypto.box import NONCE_SIZE, OVERHEAD
from coder.mesh.core.crypto.keys import KEY_SIZE, PublicKey

# The answer of a proxy or a portal never begins like this; U+1F511 is a key.
MAGIC = b"DERP\xf0\x9f\x94\x91"
# A whole UDP payload has room, so the relay carries everything that a direct path carries.
MAX_PACKET = 65_536
"""Largest packet inside SendPacket, RecvPacket and ForwardPacket."""
MAX_INFO = 262_144
"""Largest sealed info."""
# The peer states the length of a frame. Without a bound it would decide how much memory it takes.
MAX_FRAME = MAX_INFO + KEY_SIZE + NONCE_SIZE + OVERHEAD
"""Largest body accepted of any frame, known or not."""

# An unknown type is skipped (docs/protocol/derp.md#frames): new types need no new version. docs/protocol/derp.md#frames
# lists the sender of each.
SERVER_KEY = 0x01
CLIENT_INFO = 0x02
SERVER_INFO = 0x03
SEND_PACKET = 0x04
RECV_PACKET = 0x05
KEEP_ALIVE = 0x06
NOTE_PREFERRED = 0x07
PEER_GONE = 0x08
PEER_PRESENT = 0x09
FORWARD_PACKET = 0x0A
WATCH_CONNS = 0x10
CLOSE_PEER = 0x11
PING = 0x12
PONG = 0x13
HEALTH = 0x14
RESTARTING = 0x15

# A relay older than reasons sends none, which means the first reason.
GONE_DISCONNECTED = 0
# Answers to a packet that could not be delivered; the first is about a peer that was heard before.
GONE_NOT_HERE = 1

# Big endian and without padding: `!` makes it five bytes where the native alignment would make eight. The length counts
# the body alone.
HEADER = Struct("!BI")
"""Frame type, body length."""

# Milliseconds both: how long to wait, and for how long retries are worth while (docs/protocol/derp.md#frames).
RESTARTING_BODY = Struct("!II")


@dataclass(frozen=True, slots=True)
class ServerKey:
    """First frame of a connection."""

    key: PublicKey

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(SERVER_KEY, MAGIC + self.key)


@dataclass(frozen=True, slots=True)
class SealedClientInfo:
    """The client's introduction in wire form; see `open_client_info_untrusted`."""

    key: PublicKey
    "The client's node key."
    nonce: bytes
    box: bytes

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(CLIENT_INFO, self.key + self.nonce + self.box)


@dataclass(frozen=True, slots=True)
class SealedServerInfo:
    """The server's answer in wire form; see `open_server_info_untrusted`."""

    nonce: bytes
    box: bytes

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(SERVER_INFO, self.nonce + self.box)


@dataclass(frozen=True, slots=True)
class SendPacket:
    """Client to relay: deliver this."""

    destination: PublicKey
    packet: bytes

    def encode(self) -> bytes:
        """Return the whole frame."""
        return encode_send_packet(self.destination, self.packet)


@dataclass(frozen=True, slots=True)
class RecvPacket:
    """Relay to client: a packet for this client."""

    # The relay guarantees it: opening the box of ClientInfo proved the key of that connection.
    source: PublicKey
    packet: bytes

    def encode(self) -> bytes:
        """Return the whole frame."""
        return encode_recv_packet(self.source, self.packet)


@dataclass(frozen=True, slots=True)
class ForwardPacket:
    # With its source, unlike SendPacket: the connection belongs to another relay, and identifies no client.
    """Relay to relay: deliver this to your client."""

    source: PublicKey
    destination: PublicKey
    packet: bytes

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(FORWARD_PACKET, self.source + self.destination + self.packet)


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """The relay is alive."""

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(KEEP_ALIVE)


@dataclass(frozen=True, slots=True)
class NotePreferred:
    """Client to relay: whether this relay is the client's home."""

    # One byte. A relay moves packets by connected keys, so this changes no route: it is for a relay's own statistics.
    preferred: bool

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(NOTE_PREFERRED, bytes((self.preferred,)))


@dataclass(frozen=True, slots=True)
class PeerGone:
    """Relay to client: that peer cannot be reached here."""

    key: PublicKey
    reason: int = GONE_DISCONNECTED
    # Our reaction is the same for both: the learnt route is forgotten (paths/relays.py).
    "GONE_DISCONNECTED or GONE_NOT_HERE; others may come."

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(PEER_GONE, self.key + bytes((self.reason,)))


@dataclass(frozen=True, slots=True)
class PeerPresent:
    """Relay to relay: the client is connected."""

    key: PublicKey
    address: bytes = b""
    # For people who inspect a relay. Packets are routed by key, never to this address.
    "Optional: 16 address bytes and a port, big endian."

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(PEER_PRESENT, self.key + self.address)


@dataclass(frozen=True, slots=True)
class WatchConns:
    """Relay to relay: subscribe to its clients."""

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(WATCH_CONNS)


@dataclass(frozen=True, slots=True)
class ClosePeer:
    """Relay to relay: disconnect the client."""

    key: PublicKey

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(CLOSE_PEER, self.key)


@dataclass(frozen=True, slots=True)
class DerpPing:
    """Either direction; answered by a DerpPong with the same data."""

    data: bytes
    # Returned unchanged: only the sender interprets them, and a relay need not keep anything for it.
    "8 bytes."

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(PING, self.data)


@dataclass(frozen=True, slots=True)
class DerpPong:
    """The answer to a DerpPing."""

    data: bytes

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(PONG, self.data)


@dataclass(frozen=True, slots=True)
class Health:
    """Relay to client: a problem, or none."""

    problem: str
    # The all-clear is the same frame, so it needs no type of its own.
    "Empty: healthy."

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(HEALTH, self.problem.encode())


@dataclass(frozen=True, slots=True)
class Restarting:
    """Relay to client: the relay is about to restart."""

    reconnect_in_ms: int
    try_for_ms: int

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(RESTARTING, RESTARTING_BODY.pack(self.reconnect_in_ms, self.try_for_ms))


@dataclass(frozen=True, slots=True)
class UnknownFrame:
    """A type of a later protocol: to be skipped."""

    kind: int
    body: bytes

    def encode(self) -> bytes:
        """Return the whole frame."""
        return frame(self.kind, self.body)


Frame = (
    ServerKey
    | SealedClientInfo
    | SealedServerInfo
    | SendPacket
    | RecvPacket
    | ForwardPacket
    | KeepAlive
    | NotePreferred
    | PeerGone
    | PeerPresent
    | WatchConns
    | ClosePeer
    | DerpPing
    | DerpPong
    | Health
    | Restarting
    | UnknownFrame
)


def frame(kind: int, body: bytes = b"") -> bytes:
    """Return a frame of any type."""
    return HEADER.pack(kind, len(body)) + body


def encode_send_packet(destination: bytes, packet: bytes) -> bytes:
    """Return the frame of SendPacket, without creating the value."""
    # One concatenation: the bulk of a node's output without a direct path.
    return HEADER.pack(SEND_PACKET, KEY_SIZE + len(packet)) + destination + packet


def encode_recv_packet(source: bytes, packet: bytes) -> bytes:
    """Return the frame of RecvPacket, without creating the value."""
    return HEADER.pack(RECV_PACKET, KEY_SIZE + len(packet)) + source + packet
