"""DERP frames: what relays and their clients say to each other.

Lives here: the frame codec, each frame as a value, the two sealed JSON infos.
Does not live here: connections, queues, routes (drivers/derp_client.py, drivers/derp_server.py).
Obeys: docs/protocol/derp.md; tests/data/wire/derp.json. A relay moves SendPacket and RecvPacket frames by slicing their
bodies; values are for the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct

from coder.mesh.core.crypto.box import NONCE_SIZE, OVERHEAD, SharedBox
from coder.mesh.core.crypto.keys import KEY_SIZE, PublicKey
from coder.mesh.core.errors import CryptoError, WireError

MAGIC = b"DERP\xf0\x9f\x94\x91"
PROTOCOL_VERSION = 2
MAX_PACKET = 65_536
"""Largest packet inside SendPacket, RecvPacket and ForwardPacket."""
MAX_INFO = 262_144
"""Largest sealed info."""
MAX_FRAME = MAX_INFO + KEY_SIZE + NONCE_SIZE + OVERHEAD
"""Largest body accepted of any frame, known or not."""

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

GONE_DISCONNECTED = 0
GONE_NOT_HERE = 1

HEADER = Struct("!BI")
"""Frame type, body length."""

_MAX_BODY = {
    SEND_PACKET: MAX_PACKET + KEY_SIZE,
    RECV_PACKET: MAX_PACKET + KEY_SIZE,
    FORWARD_PACKET: MAX_PACKET + 2 * KEY_SIZE,
}
_PING_SIZE = 8
_RESTARTING = Struct("!II")


@dataclass(frozen=True, slots=True)
class ServerKey:
    """First frame of a connection."""

    key: PublicKey

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(SERVER_KEY, MAGIC + self.key)


@dataclass(frozen=True, slots=True)
class SealedClientInfo:
    """The client's introduction as it travels; see `open_client_info_untrusted`."""

    key: PublicKey
    "The client's node key."
    nonce: bytes
    box: bytes

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(CLIENT_INFO, self.key + self.nonce + self.box)


@dataclass(frozen=True, slots=True)
class SealedServerInfo:
    """The server's answer as it travels; see `open_server_info_untrusted`."""

    nonce: bytes
    box: bytes

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(SERVER_INFO, self.nonce + self.box)


@dataclass(frozen=True, slots=True)
class SendPacket:
    """Client to relay: deliver this."""

    destination: PublicKey
    packet: bytes

    def encode(self) -> bytes:
        """The whole frame."""
        return encode_send_packet(self.destination, self.packet)


@dataclass(frozen=True, slots=True)
class RecvPacket:
    """Relay to client: this came for you."""

    source: PublicKey
    packet: bytes

    def encode(self) -> bytes:
        """The whole frame."""
        return encode_recv_packet(self.source, self.packet)


@dataclass(frozen=True, slots=True)
class ForwardPacket:
    """Relay to relay: deliver this to your client."""

    source: PublicKey
    destination: PublicKey
    packet: bytes

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(FORWARD_PACKET, self.source + self.destination + self.packet)


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """The relay is alive."""

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(KEEP_ALIVE)


@dataclass(frozen=True, slots=True)
class NotePreferred:
    """Client to relay: whether this is my home."""

    preferred: bool

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(NOTE_PREFERRED, bytes((self.preferred,)))


@dataclass(frozen=True, slots=True)
class PeerGone:
    """Relay to client: that peer cannot be reached here."""

    key: PublicKey
    reason: int = GONE_DISCONNECTED
    "GONE_DISCONNECTED or GONE_NOT_HERE; others may come."

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(PEER_GONE, self.key + bytes((self.reason,)))


@dataclass(frozen=True, slots=True)
class PeerPresent:
    """Relay to relay: that client is here."""

    key: PublicKey
    address: bytes = b""
    "Optional: 16 address bytes and a port, big endian."

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(PEER_PRESENT, self.key + self.address)


@dataclass(frozen=True, slots=True)
class WatchConns:
    """Relay to relay: tell me about your clients."""

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(WATCH_CONNS)


@dataclass(frozen=True, slots=True)
class ClosePeer:
    """Relay to relay: drop that client."""

    key: PublicKey

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(CLOSE_PEER, self.key)


@dataclass(frozen=True, slots=True)
class DerpPing:
    """Either way; answered by a DerpPong with the same data."""

    data: bytes
    "8 bytes."

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(PING, self.data)


@dataclass(frozen=True, slots=True)
class DerpPong:
    """The answer to a DerpPing."""

    data: bytes

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(PONG, self.data)


@dataclass(frozen=True, slots=True)
class Health:
    """Relay to client: a problem, or none."""

    problem: str
    "Empty: healthy."

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(HEALTH, self.problem.encode())


@dataclass(frozen=True, slots=True)
class Restarting:
    """Relay to client: I am about to restart."""

    reconnect_in_ms: int
    try_for_ms: int

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(RESTARTING, _RESTARTING.pack(self.reconnect_in_ms, self.try_for_ms))


@dataclass(frozen=True, slots=True)
class UnknownFrame:
    """A type of a later protocol: to be skipped."""

    kind: int
    body: bytes

    def encode(self) -> bytes:
        """The whole frame."""
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


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """What a client says of itself."""

    version: int = PROTOCOL_VERSION
    can_ack_pings: bool = True
    is_prober: bool = False
    mesh_key: str = ""
    "Hex; only relays of one mesh have it. A secret."

    def encode(self) -> bytes:
        """The JSON inside the box; defaults left out."""
        fields: dict[str, object] = {"version": self.version}
        if self.mesh_key:
            fields["meshKey"] = self.mesh_key
        if self.can_ack_pings:
            fields["CanAckPings"] = True
        if self.is_prober:
            fields["IsProber"] = True
        return json.dumps(fields, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a relay says of itself."""

    version: int = PROTOCOL_VERSION
    rate_bytes_per_second: int = 0
    "0: no limit."
    rate_burst_bytes: int = 0

    def encode(self) -> bytes:
        """The JSON inside the box; zeros left out."""
        fields = {"version": self.version}
        if self.rate_bytes_per_second:
            fields["TokenBucketBytesPerSecond"] = self.rate_bytes_per_second
        if self.rate_burst_bytes:
            fields["TokenBucketBytesBurst"] = self.rate_burst_bytes
        return json.dumps(fields, separators=(",", ":")).encode()


def frame(kind: int, body: bytes = b"") -> bytes:
    """A frame of any type."""
    return HEADER.pack(kind, len(body)) + body


def encode_send_packet(destination: bytes, packet: bytes) -> bytes:
    """The frame of SendPacket, without making the value."""
    return HEADER.pack(SEND_PACKET, KEY_SIZE + len(packet)) + destination + packet


def encode_recv_packet(source: bytes, packet: bytes) -> bytes:
    """The frame of RecvPacket, without making the value."""
    return HEADER.pack(RECV_PACKET, KEY_SIZE + len(packet)) + source + packet


def encode_send_packets(destination: bytes, packets: Iterable[bytes]) -> bytes:
    """Many SendPacket frames in one buffer: one write, one WebSocket message."""
    pack = HEADER.pack
    parts: list[bytes] = []
    for packet in packets:
        parts += (pack(SEND_PACKET, KEY_SIZE + len(packet)), destination, packet)
    return b"".join(parts)


class FrameReader:
    """Cuts a byte stream into frames."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of an unfinished frame."""
        return len(self._buffer)

    def feed_untrusted(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """(type, body) of every frame that is now complete; WireError when one is longer than allowed.

        After a WireError the stream cannot be followed any more.
        """
        # A list: a caller that stops half-way must not leave the buffer behind its frames.
        buffer = self._buffer
        buffer += data
        frames = []
        at, end = 0, len(buffer)
        unpack = HEADER.unpack_from
        # Released before the buffer is resized: a bytearray with living views cannot shrink.
        with memoryview(buffer) as view:
            while end - at >= 5:
                kind, size = unpack(buffer, at)
                if size > MAX_PACKET and size > _MAX_BODY.get(kind, MAX_FRAME):
                    raise WireError("frame_too_long")
                if end - at - 5 < size:
                    break
                frames.append((kind, bytes(view[at + 5 : at + 5 + size])))
                at += 5 + size
        if at:
            del buffer[:at]
        return iter(frames)


def parse_untrusted(kind: int, body: bytes) -> Frame:
    """The value of a frame; WireError when the body is too short for its type. Unknown types give UnknownFrame."""
    parser = _PARSERS.get(kind)
    if parser is None:
        return UnknownFrame(kind, body)
    least, most, make = parser
    if len(body) < least:
        raise WireError("short_frame", f"frame 0x{kind:02x} has {len(body)} bytes of at least {least}")
    if len(body) > most:
        raise WireError("frame_too_long")
    return make(body)


def seal_client_info(box: SharedBox, key: PublicKey, nonce: bytes, info: ClientInfo) -> SealedClientInfo:
    """`box` is between the client's node key and the server's key; nonce 24 random bytes."""
    return SealedClientInfo(key, nonce, box.seal(nonce, info.encode()))


def seal_server_info(box: SharedBox, nonce: bytes, info: ServerInfo) -> SealedServerInfo:
    """`box` is between the server's key and the client's node key; nonce 24 random bytes."""
    return SealedServerInfo(nonce, box.seal(nonce, info.encode()))


def open_client_info_untrusted(box: SharedBox, sealed: SealedClientInfo) -> ClientInfo:
    """WireError when forged or no JSON object of the known fields."""
    fields = _open_json(box, sealed.nonce, sealed.box)
    return ClientInfo(
        version=_integer(fields, "version"),
        can_ack_pings=fields.get("CanAckPings") is True,
        is_prober=fields.get("IsProber") is True,
        mesh_key=_mesh_key(fields),
    )


def open_server_info_untrusted(box: SharedBox, sealed: SealedServerInfo) -> ServerInfo:
    """WireError when forged or no JSON object of the known fields."""
    fields = _open_json(box, sealed.nonce, sealed.box)
    return ServerInfo(
        version=_integer(fields, "version"),
        rate_bytes_per_second=_integer(fields, "TokenBucketBytesPerSecond"),
        rate_burst_bytes=_integer(fields, "TokenBucketBytesBurst"),
    )


def _open_json(box: SharedBox, nonce: bytes, sealed: bytes) -> dict[str, object]:
    try:
        fields = json.loads(box.open_untrusted(nonce, sealed))
    except CryptoError as error:
        raise WireError("forged") from error
    except (ValueError, RecursionError) as error:
        raise WireError("bad_info") from error
    if not isinstance(fields, dict):
        raise WireError("bad_info")
    return fields


def _integer(fields: dict[str, object], name: str) -> int:
    value = fields.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError("bad_info")
    return value


def _mesh_key(fields: dict[str, object]) -> str:
    value = fields.get("meshKey") or ""
    # JSON can spell what is no text at all (a lone surrogate), and such a string cannot be compared as bytes.
    if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
        raise WireError("bad_info")
    return value


def _key(body: bytes, at: int = 0) -> PublicKey:
    return PublicKey(body[at : at + KEY_SIZE])


def _server_key(body: bytes) -> Frame:
    if not body.startswith(MAGIC):
        raise WireError("bad_magic")
    return ServerKey(_key(body, len(MAGIC)))


def _client_info(body: bytes) -> Frame:
    return SealedClientInfo(_key(body), body[KEY_SIZE : KEY_SIZE + NONCE_SIZE], body[KEY_SIZE + NONCE_SIZE :])


def _peer_gone(body: bytes) -> Frame:
    return PeerGone(_key(body), body[KEY_SIZE] if len(body) > KEY_SIZE else GONE_DISCONNECTED)


# type: (least, most bytes of the body, how to read it)
_PARSERS = {
    SERVER_KEY: (len(MAGIC) + KEY_SIZE, MAX_FRAME, _server_key),
    CLIENT_INFO: (KEY_SIZE + NONCE_SIZE, MAX_FRAME, _client_info),
    SERVER_INFO: (NONCE_SIZE, MAX_FRAME, lambda body: SealedServerInfo(body[:NONCE_SIZE], body[NONCE_SIZE:])),
    SEND_PACKET: (KEY_SIZE, MAX_PACKET + KEY_SIZE, lambda body: SendPacket(_key(body), body[KEY_SIZE:])),
    RECV_PACKET: (KEY_SIZE, MAX_PACKET + KEY_SIZE, lambda body: RecvPacket(_key(body), body[KEY_SIZE:])),
    KEEP_ALIVE: (0, MAX_FRAME, lambda _: KeepAlive()),
    NOTE_PREFERRED: (1, MAX_FRAME, lambda body: NotePreferred(body[0] != 0)),
    PEER_GONE: (KEY_SIZE, MAX_FRAME, _peer_gone),
    PEER_PRESENT: (KEY_SIZE, MAX_FRAME, lambda body: PeerPresent(_key(body), body[KEY_SIZE:])),
    FORWARD_PACKET: (
        2 * KEY_SIZE,
        MAX_PACKET + 2 * KEY_SIZE,
        lambda body: ForwardPacket(_key(body), _key(body, KEY_SIZE), body[2 * KEY_SIZE :]),
    ),
    WATCH_CONNS: (0, MAX_FRAME, lambda _: WatchConns()),
    CLOSE_PEER: (KEY_SIZE, MAX_FRAME, lambda body: ClosePeer(_key(body))),
    PING: (_PING_SIZE, MAX_FRAME, lambda body: DerpPing(body[:_PING_SIZE])),
    PONG: (_PING_SIZE, MAX_FRAME, lambda body: DerpPong(body[:_PING_SIZE])),
    HEALTH: (0, MAX_FRAME, lambda body: Health(body.decode("utf-8", "replace"))),
    RESTARTING: (8, MAX_FRAME, lambda body: Restarting(*_RESTARTING.unpack_from(body))),
}
