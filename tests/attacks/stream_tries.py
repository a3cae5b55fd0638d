"""Messages of WebSockets, and of the RPC in them (yamux, dRPC)."""

from __future__ import annotations

import os
import struct

from tests.attacks.tries import Step, wire

_TOKEN = b"Host: {host}\r\nCoder-Session-Token: {token}\r\n"


def frame(kind: int, data: bytes = b"", *, mask: bool = True, first: int = 0x80, length: int | None = None) -> bytes:
    size = len(data) if length is None else length
    head = bytes([first | kind])
    bit = 0x80 if mask else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    return head + (bytes(4) if mask else b"") + data


FRAMES: dict[str, tuple[Step, ...]] = {
    "nothing, reset": ("reset",),
    "nothing, half closed": ("half",),
    "an unmasked frame": (frame(2, b"x", mask=False),),
    "a reserved bit": (frame(2, b"x", first=0xC0),),
    "all reserved bits": (frame(2, b"x", first=0xF0),),
    "reserved kind 3": (frame(3, b"x"),),
    "reserved control kind 11": (frame(11, b"x"),),
    "a continuation of nothing": (frame(0, b"x"),),
    "a start within a message": (frame(2, b"x", first=0) + frame(2, b"y"),),
    "a message without an end": (frame(2, b"x", first=0) + frame(0, b"x", first=0) * 1000,),
    "10,000 empty continuations": (frame(2, b"", first=0) + frame(0, b"", first=0) * 10000,),
    "a ping of 126 bytes": (frame(9, bytes(126)),),
    "a ping in pieces": (frame(9, b"x", first=0),),
    "5,000 pings": (frame(9, b"x") * 5000,),
    "a ping within a message": (frame(2, b"x", first=0) + frame(9, b"") + frame(0, b"y"),),
    "5,000 pongs": (frame(10, b"x") * 5000,),
    "a close of one byte": (frame(8, b"x"),),
    "a close of code 0": (frame(8, b"\0\0"),),
    "a close of code 1005": (frame(8, struct.pack(">H", 1005)),),
    "a close of code 65535": (frame(8, b"\xff\xff"),),
    "a close with invalid UTF-8": (frame(8, b"\x03\xe8\xff"),),
    "a close of 126 bytes": (frame(8, b"\x03\xe8" + bytes(124)),),
    "two closes": (frame(8, b"\x03\xe8") * 2,),
    "data after the close": (frame(8, b"\x03\xe8") + frame(2, b"x") * 100,),
    "a length of 2^63": (frame(2, b"", length=1 << 63),),
    "a length of 2^62": (frame(2, b"", length=1 << 62),),
    "a length of 5 in eight bytes": (b"\x82\xff" + struct.pack(">Q", 5) + bytes(9),),
    "a length of 5 in two bytes": (b"\x82\xfe\0\x05" + bytes(9),),
    "half a head": (b"\x82",),
    "a head without its mask": (b"\x82\x85\0",),
    "less than announced, reset": (frame(2, b"x", length=1000), "reset"),
    "a text of invalid UTF-8": (frame(1, b"\xff\xfe"),),
    "a text of surrogates": (frame(1, b"\xed\xa0\x80"),),
    "a text cut in a letter": (frame(1, "é".encode()[:1], first=0) + frame(0, "é".encode()[1:]),),
    "an empty text": (frame(1, b""),),
    "an empty binary": (frame(2, b""),),
    "a message of 5 MiB": (frame(2, bytes(5 << 20)),),
    "HTTP instead of frames": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",),
    "random bytes": (os.urandom(4000),),
    "byte by byte": tuple(frame(2, b"hello")[at : at + 1] for at in range(11)),
    "answers not read": (frame(9, bytes(125)) * 20000, "close"),
}


def _yamux(kind: int, flags: int, stream: int, length: int, data: bytes = b"", version: int = 0) -> bytes:
    return frame(2, struct.pack(">BBHII", version, kind, flags, stream, length) + data)


_OPEN = _yamux(1, 1, 1, 0)
RPC: dict[str, tuple[Step, ...]] = {
    "yamux: another version": (_yamux(0, 0, 0, 0, version=9),),
    "yamux: an unknown kind": (_yamux(9, 0, 0, 0),),
    "yamux: unknown flags": (_yamux(1, 0xFFF0, 1, 0),),
    "yamux: data of stream 0": (_yamux(0, 0, 0, 5, b"hello"),),
    "yamux: data of no stream": (_yamux(0, 0, 7, 5, b"hello"),),
    "yamux: an even stream of a client": (_yamux(1, 1, 2, 0),),
    "yamux: a stream opened twice": (_OPEN + _OPEN,),
    "yamux: stream 2^32-1": (_yamux(1, 1, 0xFFFFFFFF, 0),),
    "yamux: 2,000 streams": (b"".join(_yamux(1, 1, 2 * n + 1, 0) for n in range(2000)),),
    "yamux: opened and closed 2,000 times": (b"".join(_yamux(1, 5, 2 * n + 1, 0) for n in range(2000)),),
    "yamux: opened and reset 2,000 times": (b"".join(_yamux(1, 9, 2 * n + 1, 0) for n in range(2000)),),
    "yamux: data beyond the window": (_OPEN + _yamux(0, 0, 1, 0xFFFFFF, bytes(1000)),),
    "yamux: a window of 2^32": (_OPEN + _yamux(1, 0, 1, 0xFFFFFFFF) * 3,),
    "yamux: a window of no stream": (_yamux(1, 0, 99, 5),),
    "yamux: 2,000 windows of 0": (_OPEN + _yamux(1, 0, 1, 0) * 2000,),
    "yamux: 2,000 pings": (_yamux(2, 1, 0, 7) * 2000,),
    "yamux: a pong of nothing": (_yamux(2, 2, 0, 7),),
    "yamux: a ping of a stream": (_yamux(2, 1, 5, 7),),
    "yamux: goodbye": (_yamux(3, 0, 0, 0) + _OPEN,),
    "yamux: goodbye of an unknown code": (_yamux(3, 0, 0, 99),),
    "yamux: data after the end": (_yamux(1, 5, 1, 0) + _yamux(0, 0, 1, 3, b"abc"),),
    "yamux: half a header": (frame(2, b"\0\x01"), "half"),
    "yamux: a header in pieces": (frame(2, b"\0\x01\0\x01"), frame(2, bytes(8))),
    "yamux: reset within data": (_OPEN + _yamux(0, 0, 1, 100, b"abc"), "reset"),
    "dRPC: garbage": (_OPEN + _yamux(0, 0, 1, 200, bytes(range(200))),),
    "dRPC: zeros": (_OPEN + _yamux(0, 0, 1, 200, bytes(200)),),
    "dRPC: a number that never ends": (_OPEN + _yamux(0, 0, 1, 50, b"\x03" + b"\xff" * 49),),
    "dRPC: a packet of 2^60": (_OPEN + _yamux(0, 0, 1, 12, b"\x03\x01\x01" + b"\xff" * 8 + b"\x0f"),),
    "dRPC: an unknown method": (_OPEN + _yamux(0, 0, 1, 12, b"\x03\x01\x01\x08/x.Y/Zzz"),),
    "dRPC: a method that is no UTF-8": (_OPEN + _yamux(0, 0, 1, 8, b"\x03\x01\x01\x04\xff\xfe\xfd\xfc"),),
    "dRPC: a message before its method": (_OPEN + _yamux(0, 0, 1, 7, b"\x05\x01\x01\x03abc"),),
    "dRPC: a cancel of nothing": (_OPEN + _yamux(0, 0, 1, 4, b"\x0f\x01\x01\0"),),
    "dRPC: an error": (_OPEN + _yamux(0, 0, 1, 7, b"\x07\x01\x01\x03abc"),),
    "dRPC: metadata of garbage": (_OPEN + _yamux(0, 0, 1, 9, b"\x0d\x01\x01\x05\xff\xff\xff\xff\xff"),),
    "dRPC: ids backwards": (_OPEN + _yamux(0, 0, 1, 8, b"\x03\x05\x01\0\x03\x01\x01\0"),),
    "dRPC: an end without a call": (_OPEN + _yamux(0, 0, 1, 4, b"\x0b\x01\x01\0"),),
}
_UPGRADE = (
    b"GET /api/v2/tailnet?version=2.0 HTTP/1.1\r\n"
    + _TOKEN
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
_INBOX = _UPGRADE.replace(b"/api/v2/tailnet?version=2.0", b"/api/v2/notifications/inbox/watch")

FRAME_TRIES = [wire("api", f"WebSocket with RPC: {name}", _UPGRADE, *steps) for name, steps in FRAMES.items()]
FRAME_TRIES += [wire("api", f"WebSocket with texts: {name}", _INBOX, *steps) for name, steps in FRAMES.items()]
RPC_TRIES = [wire("api", f"RPC: {name}", _UPGRADE, *steps) for name, steps in RPC.items()]
TRIES = [*FRAME_TRIES, *RPC_TRIES]
