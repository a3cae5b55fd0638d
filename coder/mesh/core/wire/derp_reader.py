"""DERP frame parser: cuts a stream, and returns the value of each frame.

Lives here: everything that reads untrusted frames. The values are in derp.py.
Obeys docs/protocol/derp.md; tests/data/wire/derp.json.
"""

from __future__ import annotations

from collections.abc import Iterator

from coder.mesh.core.crypto.box import NONCE_SIZE
from coder.mesh.core.crypto.keys import KEY_SIZE, PublicKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.wire.derp import (
    CLIENT_INFO,
    CLOSE_PEER,
    FORWARD_PACKET,
    GONE_DISCONNECTED,
    HEADER,
    HEALTH,
    KEEP_ALIVE,
    MAGIC,
    MAX_FRAME,
    MAX_PACKET,
    NOTE_PREFERRED,
    PEER_GONE,
    PEER_PRESENT,
    PING,
    PONG,
    RECV_PACKET,
    RESTARTING,
    RESTARTING_BODY,
    SEND_PACKET,
    SERVER_INFO,
    SERVER_KEY,
    WATCH_CONNS,
    ClosePeer,
    DerpPing,
    DerpPong,
    ForwardPacket,
    Frame,
    Health,
    KeepAlive,
    NotePreferred,
    PeerGone,
    PeerPresent,
    RecvPacket,
    Restarting,
    SealedClientInfo,
    SealedServerInfo,
    SendPacket,
    ServerKey,
    UnknownFrame,
    WatchConns,
)

# The bytes in front of the packet differ: one key, or two where another relay gives destination and source. Everything
# else may be as long as the longest box.
_MAX_BODY = {
    SEND_PACKET: MAX_PACKET + KEY_SIZE,
    RECV_PACKET: MAX_PACKET + KEY_SIZE,
    FORWARD_PACKET: MAX_PACKET + 2 * KEY_SIZE,
}
# docs/protocol/derp.md#frames; longer ones are answered with their first eight bytes.
_PING_SIZE = 8


class FrameReader:
    """Cuts a byte stream into frames."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Return the bytes of an unfinished frame."""
        return len(self._buffer)

    def feed_untrusted(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Return (type, body) of every frame that is now complete. Raises WireError when one is longer than allowed.

        After a WireError the rest of the stream cannot be parsed.
        """
        # A list: a caller that stops half-way must not leave the buffer inconsistent.
        buffer = self._buffer
        buffer += data
        frames = []
        at, end = 0, len(buffer)
        unpack = HEADER.unpack_from
        # Released before the buffer is resized: a bytearray with living views cannot shrink.
        with memoryview(buffer) as view:
            # Five is the header's size, written out: this loop sees every byte that is relayed.
            while end - at >= 5:
                kind, size = unpack(buffer, at)
                # Nearly all frames are short: the table is checked for long ones only.
                if size > MAX_PACKET and size > _MAX_BODY.get(kind, MAX_FRAME):
                    raise WireError("frame_too_long")
                # An unfinished frame waits in the buffer, whose size the check above has bounded.
                if end - at - 5 < size:
                    break
                # Copied once, here: a packet outlives the buffer it came in, and a view of it would keep the whole read
                # alive.
                frames.append((kind, bytes(view[at + 5 : at + 5 + size])))
                at += 5 + size
        if at:
            del buffer[:at]
        return iter(frames)


def parse_untrusted(kind: int, body: bytes) -> Frame:
    """Return the value of a frame. Raises WireError when the body is too short for its type.

    Unknown types give UnknownFrame.
    """
    parser = _PARSERS.get(kind)
    # An unknown type is skipped, as in docs/protocol/derp.md#frames: newer relays need no new version.
    if parser is None:
        return UnknownFrame(kind, body)
    min_size, max_size, make = parser
    if len(body) < min_size:
        raise WireError("short_frame", f"frame 0x{kind:02x} has {len(body)} bytes of at least {min_size}")
    if len(body) > max_size:
        raise WireError("frame_too_long")
    # Bytes behind the fields of a type are ignored: later versions append.
    return make(body)


def _key(body: bytes, at: int = 0) -> PublicKey:
    return PublicKey(body[at : at + KEY_SIZE])


def _server_key(body: bytes) -> Frame:
    # Five bytes of an error page may look like a header; its text does not look like this.
    if not body.startswith(MAGIC):
        raise WireError("bad_magic")
    # Bytes behind the key are ignored: later relays may append.
    return ServerKey(_key(body, len(MAGIC)))


def _client_info(body: bytes) -> Frame:
    # Cut only. Opening needs the relay's private key, which this file must not have (derp_info.py).
    return SealedClientInfo(_key(body), body[KEY_SIZE : KEY_SIZE + NONCE_SIZE], body[KEY_SIZE + NONCE_SIZE :])


def _peer_gone(body: bytes) -> Frame:
    # The byte may be missing; see GONE_DISCONNECTED.
    return PeerGone(_key(body), body[KEY_SIZE] if len(body) > KEY_SIZE else GONE_DISCONNECTED)


# type: (minimum and maximum bytes of the body, parser)
# The minimum is the size of the fields, the maximum bounds the memory of a stranger's frame: only packets have a
# tighter bound than a frame, as everything else is rare.
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
    # Cut to eight bytes: an answer as long as the ping would let a stranger make us send as much as it does.
    PING: (_PING_SIZE, MAX_FRAME, lambda body: DerpPing(body[:_PING_SIZE])),
    PONG: (_PING_SIZE, MAX_FRAME, lambda body: DerpPong(body[:_PING_SIZE])),
    # For people: a wrong byte is shown as a replacement, and ends nothing.
    HEALTH: (0, MAX_FRAME, lambda body: Health(body.decode("utf-8", "replace"))),
    RESTARTING: (8, MAX_FRAME, lambda body: Restarting(*RESTARTING_BODY.unpack_from(body))),
}
