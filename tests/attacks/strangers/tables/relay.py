"""Tries against the relay: HTTP before the upgrade, sealed infos, frames in every state, WebSockets, carried streams.

Frames are type, length of four bytes, body. Placeholders of `relay.py`: OWN is the attacker's key, OTHER the key of a
victim that is connected.
"""

from __future__ import annotations

from struct import pack
from typing import Any

from tests.attacks.strangers.kinds import Kind, kind

OWN, OTHER = b"<own-key-of-32-bytes............", b"<key-of-a-connected-peer........"
TYPES = {
    0x00: "zero",
    0x01: "server key",
    0x02: "client info",
    0x03: "server info",
    0x04: "send packet",
    0x05: "received packet",
    0x06: "keepalive",
    0x07: "preferred",
    0x08: "peer gone",
    0x09: "peer present",
    0x0A: "forwarded packet",
    0x10: "watch connections",
    0x11: "close peer",
    0x12: "ping",
    0x13: "pong",
    0x14: "health",
    0x15: "restarting",
    0xFF: "unknown type",
}
DISCO = b"TS\xf0\x9f\x92\xac"
BIG = 0xFFFFFFFF


def frame(kind_: int, body: bytes = b"", length: int | None = None) -> bytes:
    return pack("!BI", kind_, len(body) if length is None else length) + body


def ws(
    opcode: int, body: bytes = b"", *, fin: int = 1, mask: bool = True, rsv: int = 0, size: bytes | None = None
) -> bytes:
    """A WebSocket frame; `size` replaces the length bytes."""
    head = bytes([fin << 7 | rsv << 4 | opcode])
    if size is None:
        size = bytes([len(body)]) if len(body) < 126 else b"\x7e" + pack("!H", len(body))
    if mask:
        size = bytes([size[0] | 0x80]) + size[1:]
        body = bytes(4) + body  # a mask of zeros
    return head + size + body


def _states() -> list[Kind]:
    """Each type where it does not belong: before the login, and sent by a client."""
    found = []
    for number, name in TYPES.items():
        if number != 0x02:
            found.append(kind("frames before the login", name, frame(number, bytes(32)), stage="upgraded"))
        found.append(kind("frames of a client, empty body", name, frame(number), stage="client"))
        found.append(kind("frames of a client, one key", name, frame(number, OTHER), stage="client"))
    for number in (0x00, 0x04, 0x07, 0x08, 0x0A, 0x10, 0x11, 0x12, 0xFF):
        name = TYPES[number]
        found.append(kind("frames cut by the end", name, frame(number, OTHER, 64), stage="client"))
        found.append(kind("frames cut by a reset", name, frame(number, OTHER, 64), stage="client", then="reset"))
        found.append(kind("length of 4 GiB", name, frame(number, OTHER, BIG), stage="client"))
        found.append(kind("one byte more than allowed", name, frame(number, OTHER, 65536 + 33), stage="client"))
    return found


def _logins() -> list[Kind]:
    group = "client info"
    raw = [
        ("no body", frame(2)),
        ("key alone", frame(2, OWN)),
        ("key and half a nonce", frame(2, OWN + bytes(12))),
        ("key and nonce without a box", frame(2, OWN + bytes(24))),
        ("box shorter than its tag", frame(2, OWN + bytes(24 + 8))),
        ("box of zeros", frame(2, OWN + bytes(24 + 64))),
        ("key of zeros", frame(2, bytes(32 + 24 + 64))),
        ("key of small order: one", frame(2, b"\1" + bytes(31 + 24 + 64))),
        (
            "key of order eight",
            frame(2, bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800") + bytes(88)),
        ),
        ("key beyond the prime", frame(2, b"\xff" * 32 + bytes(88))),
        ("box of the largest size", frame(2, OWN + bytes(262144 + 24 + 16))),
        ("larger than the largest size", frame(2, OWN, 262144 + 32 + 24 + 16 + 1)),
        ("length of 4 GiB", frame(2, OWN, BIG)),
        ("type alone", b"\2"),
        ("half a length", b"\2\0\0"),
        ("an HTTP request instead", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("a TLS hello instead", bytes.fromhex("16030100a5010000a10303") + bytes(64)),
        ("a second HTTP answer", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        ("text", b"hello\r\n" * 20),
        ("nothing", b""),
    ]
    found = [kind(group, name, data, stage="upgraded") for name, data in raw]
    sealed = [
        ("empty text", b""),
        ("no JSON", b"\xff\xfe"),
        ("null", b"null"),
        ("list", b"[]"),
        ("number", b"7"),
        ("text", b'"x"'),
        ("empty object", b"{}"),
        ("version as text", b'{"version":"2"}'),
        ("version as float", b'{"version":2.5}'),
        ("version as boolean", b'{"version":true}'),
        ("version as list", b'{"version":[]}'),
        ("version negative", b'{"version":-1}'),
        ("version of 5,000 digits", b'{"version":' + b"9" * 5000 + b"}"),
        ("version NaN", b'{"version":NaN}'),
        ("version infinite", b'{"version":1e999}'),
        ("mesh key wrong", b'{"version":2,"meshKey":"' + b"a" * 64 + b'"}'),
        ("mesh key of no hex", b'{"version":2,"meshKey":"zz"}'),
        ("mesh key of 200 KB", b'{"version":2,"meshKey":"' + b"a" * 200_000 + b'"}'),
        ("mesh key as number", b'{"version":2,"meshKey":1}'),
        ("mesh key as object", b'{"version":2,"meshKey":{}}'),
        ("mesh key with a lone surrogate", b'{"version":2,"meshKey":"\\ud800"}'),
        ("mesh key with a zero byte", b'{"version":2,"meshKey":"\\u0000"}'),
        ("mesh key twice", b'{"version":2,"meshKey":"a","meshKey":"b"}'),
        ("capabilities as text", b'{"version":2,"CanAckPings":"yes","IsProber":"no"}'),
        ("depth of 60,000", b'{"version":' + b"[" * 60_000 + b"]" * 60_000 + b"}"),
        ("60,000 fields", b"{" + b",".join(b'"%d":1' % n for n in range(25_000)) + b"}"),
        ("byte order mark", b"\xef\xbb\xbf{}"),
        ("UTF-16", '{"version":2}'.encode("utf-16")),
        ("text after the object", b'{"version":2}{"version":3}'),
        ("unfinished object", b'{"version":2'),
    ]
    found += [kind("sealed content", name, data, stage="info") for name, data in sealed]
    good = b'{"version":2,"CanAckPings":true}'
    found += [
        kind("login repeated", "the same info twice", good, stage="info twice"),
        kind("login repeated", "the info of another connection", good, stage="info replayed"),
        kind("login repeated", "info sealed for another relay", good, stage="info for another relay"),
        kind("login repeated", "info with one byte changed", good, stage="info changed"),
        kind("login repeated", "key of another client", good, stage="info with another key"),
        kind("login repeated", "one key on 40 connections", good, stage="one key often"),
        kind("login repeated", "the key of a connected peer without its secret", good, stage="info of the victim"),
    ]
    return found


def _clients() -> list[Kind]:
    group, send = "packets of a client", frame(4, OTHER + b"x")
    raw: list[tuple[Any, ...]] = [
        ("to itself", frame(4, OWN + b"x") * 50),
        ("to a key of zeros", frame(4, bytes(32) + b"x")),
        ("to 2,000 different keys", b"".join(frame(4, n.to_bytes(32, "big") + b"x") for n in range(2000))),
        ("without a packet", frame(4, OTHER)),
        ("shorter than a key", frame(4, OTHER[:31])),
        ("of the largest size", frame(4, OTHER + bytes(65536)) * 3),
        ("20,000 empty ones", frame(4, OTHER) * 20_000),
        ("disco to an unknown key", frame(4, bytes(32) + DISCO + bytes(40)) * 100),
        ("disco of no known form to a peer", frame(4, OTHER + DISCO) * 100),
        ("disco and data in turn", (frame(4, OTHER + DISCO + bytes(8)) + send) * 1000),
        ("a frame in pieces of one byte", *[bytes([b]) for b in send]),
        ("a header in two pieces", send[:3], send[3:]),
        ("a frame and half of the next", send + send[:20]),
        ("forged as received from another", frame(5, OTHER + OWN + b"x") * 20),
        ("forwarded for another source", frame(0x0A, OTHER + OWN + b"x")),
    ]
    found = [kind(group, name, *data, stage="client") for name, *data in raw]
    other = [
        ("ping without a payload", frame(0x12)),
        ("ping of seven bytes", frame(0x12, bytes(7))),
        ("ping of 65 KB", frame(0x12, bytes(65536))),
        ("1,000 pings, never read", frame(0x12, bytes(8)) * 1000),
        ("pong without a ping", frame(0x13, bytes(8)) * 1000),
        ("preferred in turn", (frame(7, b"\1") + frame(7, b"\0")) * 500),
        ("preferred with another byte", frame(7, b"\xff")),
        ("preferred without a byte", frame(7)),
        ("preferred with 1,000 bytes", frame(7, bytes(1000))),
        ("watch with a body", frame(0x10, bytes(100))),
        ("close itself", frame(0x11, OWN)),
        ("close half a key", frame(0x11, OTHER[:16])),
        ("1,000 frames of unknown types without a body", b"".join(frame(0x40 + n % 128) for n in range(1000))),
        ("a second login", frame(2, OWN + bytes(24 + 50))),
        ("health of a relay", frame(0x14, b"\x1b[2Jdoomed")),
        ("restart of a relay", frame(0x15, pack("!II", 0, BIG))),
        ("keepalives", frame(6) * 1000),
        ("keepalive with a body", frame(6, bytes(65536))),
        ("an HTTP request", b"GET /derp HTTP/1.1\r\nHost: x\r\n\r\n"),
    ]
    found += [kind("control frames of a client", name, data, stage="client") for name, data in other]
    ends = [
        ("half-closed after a packet", send, "read"),
        ("reset after a packet", send, "reset"),
        ("closed after a packet", send, "close"),
        ("reset in a packet", send[:-1], "reset"),
        ("held without a byte", b"", "hold"),
        ("held in a header", b"\4\0", "hold"),
        ("held in a body", send[:-1], "hold"),
    ]
    found += [kind("ends of a client", name, data, stage="client", then=then) for name, data, then in ends]
    found += [
        kind("ends before the login", name, data, stage="upgraded", then=then)
        for name, data, then in (
            ("reset without a byte", b"", "reset"),
            ("closed without a byte", b"", "close"),
            ("held without a byte", b"", "hold"),
            ("reset in the info", frame(2, OWN, 120), "reset"),
            ("held in the info", frame(2, OWN, 120), "hold"),
        )
    ]
    return found


def _http() -> list[Kind]:
    base = b"GET /derp HTTP/1.1\r\nHost: x\r\n"
    up = b"Upgrade: DERP\r\nConnection: Upgrade\r\n"
    raw: list[tuple[str, bytes]] = [
        ("no upgrade", base + b"\r\n"),
        ("upgrade without Connection", base + b"Upgrade: DERP\r\n\r\n"),
        ("another protocol", base + b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),
        ("two protocols", base + b"Upgrade: h2c, DERP\r\nConnection: Upgrade\r\n\r\n"),
        ("POST", base.replace(b"GET", b"POST") + up + b"\r\n"),
        ("POST with a body", base.replace(b"GET", b"POST") + up + b"Content-Length: 5\r\n\r\nhello"),
        ("GET with a body", base + up + b"Content-Length: 5\r\n\r\nhello"),
        ("chunked body", base + up + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("expects 100", base + up + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
        ("HTTP/1.0", base.replace(b"1.1", b"1.0") + up + b"\r\n"),
        ("fast start without a frame", base + up + b"Derp-Fast-Start: 1\r\n\r\n"),
        ("fast start with garbage", base + up + b"Derp-Fast-Start: 1\r\n\r\n" + bytes(500)),
        ("fast start of another value", base + up + b"Derp-Fast-Start: 2\r\n\r\n"),
        ("frames in the same piece", base + up + b"\r\n" + frame(0x12, bytes(8)) * 50),
        ("60 KB after the head", base + up + b"\r\n" + bytes(60_000)),
        ("a second request behind", base + up + b"\r\n" + base + b"\r\n"),
        ("replica that is no id", base + up + b"Coder-Replica: nobody\r\n\r\n"),
        ("encoded path", base.replace(b"/derp", b"/%64erp") + up + b"\r\n"),
        ("double slash", base.replace(b"/derp", b"//derp") + up + b"\r\n"),
        ("trailing slash", base.replace(b"/derp", b"/derp/") + up + b"\r\n"),
        ("absolute address", base.replace(b"/derp", b"http://other/derp") + up + b"\r\n"),
        ("query of 30 KB", base.replace(b"/derp", b"/derp?" + b"a" * 30_000) + up + b"\r\n"),
        ("latency check with a body", b"POST /derp/latency-check HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
        ("probe with a range", b"GET /derp/probe HTTP/1.1\r\nHost: x\r\nRange: bytes=5-1\r\n\r\n"),
        (
            "generate_204 with a challenge of control characters",
            b"GET /generate_204 HTTP/1.1\r\nHost: x\r\nX-Tailscale-Challenge: \x01\x02\r\n\r\n",
        ),
        (
            "generate_204 with a challenge of 10 KB",
            b"GET /generate_204 HTTP/1.1\r\nHost: x\r\nX-Tailscale-Challenge: " + b"a" * 10_000 + b"\r\n\r\n",
        ),
    ]
    found = [kind("HTTP before the relay", name, data, stage="http") for name, data in raw]
    found += [
        kind("handover", "reset with the head", base + up + b"\r\n", stage="http", then="reset"),
        kind("handover", "closed with the head", base + up + b"\r\n", stage="http", then="close"),
        kind("handover", "head in pieces of one byte", *[bytes([b]) for b in base + up + b"\r\n"], stage="http"),
        kind(
            "handover", "login directly behind the head", base + up + b"\r\n" + frame(2, OWN + bytes(100)), stage="http"
        ),
        kind(
            "handover",
            "4 KB behind the head, then a reset",
            base + up + b"\r\n" + bytes(4096),
            stage="http",
            then="reset",
        ),
        kind(
            "handover",
            "fast start, then a reset",
            base + up + b"Derp-Fast-Start: 1\r\n\r\n",
            stage="http",
            then="reset",
        ),
        kind(
            "handover",
            "an earlier request on the connection",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + base + up + b"\r\n",
            stage="http",
        ),
        kind("handover", "held after the head", base + up + b"\r\n", stage="http", then="hold"),
    ]
    return found


def _websockets() -> list[Kind]:
    ping = frame(0x12, bytes(8))
    raw: list[tuple[str, bytes]] = [
        ("unmasked", ws(2, ping, mask=False)),
        ("text message", ws(1, ping)),
        ("text of broken UTF-8", ws(1, b"\xff\xfe\xfd")),
        ("reserved opcode 3", ws(3, ping)),
        ("reserved opcode 11", ws(11, ping)),
        ("reserved bit 1 (compression)", ws(2, ping, rsv=4)),
        ("reserved bits", ws(2, ping, rsv=3)),
        ("continuation without a beginning", ws(0, ping)),
        ("a beginning within a message", ws(2, ping, fin=0) + ws(2, ping)),
        (
            "fragments of one byte",
            b"".join(ws(2 if n == 0 else 0, bytes([b]), fin=int(n == len(ping) - 1)) for n, b in enumerate(ping)),
        ),
        ("5,000 empty fragments", ws(2, b"", fin=0) + ws(0, b"", fin=0) * 5000),
        ("ping of 126 bytes", ws(9, bytes(126))),
        ("fragmented ping", ws(9, b"", fin=0)),
        ("3,000 pings", ws(9, b"x") * 3000),
        ("pong without a ping", ws(10, b"x") * 100),
        ("close without a code", ws(8)),
        ("close with half a code", ws(8, b"\3")),
        ("close with a reserved code", ws(8, pack("!H", 1005))),
        ("close with code 0", ws(8, bytes(2))),
        ("close with a broken text", ws(8, pack("!H", 1000) + b"\xff")),
        ("close of 200 bytes", ws(8, bytes(200))),
        ("frames after close", ws(8, pack("!H", 1000)) + ws(2, ping) * 10),
        ("length of 2**63", ws(2, b"", size=b"\x7f" + b"\xff" * 8)),
        ("length of 2**62", ws(2, b"", size=b"\x7f\x3f" + b"\xff" * 7)),
        ("length not in shortest form", ws(2, ping, size=b"\x7e" + pack("!H", len(ping)))),
        ("64-bit length of a small frame", ws(2, ping, size=b"\x7f" + pack("!Q", len(ping)))),
        ("empty message", ws(2)),
        ("half a header", b"\x82"),
        ("header without a mask key", b"\x82\x85"),
        ("plain DERP", ping),
        ("an HTTP request", b"GET / HTTP/1.1\r\n\r\n"),
    ]
    found = [kind("WebSocket of the relay", name, data, stage="websocket") for name, data in raw]
    head = b"GET /derp HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    key, version = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", b"Sec-WebSocket-Version: 13\r\n"
    derp = b"Sec-WebSocket-Protocol: derp\r\n"
    for name, lines in (
        ("no key", version + derp),
        ("key of 15 bytes", b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAA\r\n" + version + derp),
        ("key of no base64", b"Sec-WebSocket-Key: !!!!\r\n" + version + derp),
        ("two keys", key + key + version + derp),
        ("version 8", key + b"Sec-WebSocket-Version: 8\r\n" + derp),
        ("no version", key + derp),
        ("no subprotocol", key + version),
        ("another subprotocol", key + version + b"Sec-WebSocket-Protocol: chat\r\n"),
        ("1,000 subprotocols", key + version + b"Sec-WebSocket-Protocol: " + b"a," * 1000 + b"derp\r\n"),
        ("compression", key + version + derp + b"Sec-WebSocket-Extensions: permessage-deflate\r\n"),
        ("origin of another site", key + version + derp + b"Origin: https://evil.example\r\n"),
    ):
        found.append(kind("handshake of the WebSocket", name, head + lines + b"\r\n", stage="http"))
    return found


def _carried() -> list[Kind]:
    path, zeros = b"/derp/streams/", b"0" * 32
    raw: list[tuple[str, bytes]] = [
        ("carry of another kind", b"POST /derp HTTP/1.1\r\nHost: x\r\nCoder-Carry: h2c\r\nContent-Length: 0\r\n\r\n"),
        (
            "carry and upgrade",
            b"POST /derp HTTP/1.1\r\nHost: x\r\nCoder-Carry: DERP\r\nUpgrade: DERP\r\nConnection: Upgrade\r\n\r\n",
        ),
        ("carry by GET", b"GET /derp HTTP/1.1\r\nHost: x\r\nCoder-Carry: DERP\r\n\r\n"),
        ("carry with a body", b"POST /derp HTTP/1.1\r\nHost: x\r\nCoder-Carry: DERP\r\nContent-Length: 4\r\n\r\nabcd"),
        ("unknown id", b"GET " + path + zeros + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("id of no hex", b"GET " + path + b"zz HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("id with a sign", b"GET " + path + b"-001 HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("id with an underscore", b"GET " + path + b"0_00 HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("id with 0x", b"GET " + path + b"0x01 HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("empty id", b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("id with a slash", b"GET " + path + b"../streams HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("id of 20 KB", b"GET " + path + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("id of other digits", b"GET " + path + b"%D9%A0%D9%A1 HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("DELETE of an unknown id", b"DELETE " + path + zeros + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("PUT", b"PUT " + path + zeros + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
        *(
            (f"id of process {number}", b"GET %s%04x%s HTTP/1.1\r\nHost: x\r\n\r\n" % (path, number, zeros[:28]))
            for number in (1, 0xFFFF)
        ),
    ]
    found = [kind("carried streams", name, data, stage="http") for name, data in raw]
    opened: list[tuple[str, bytes]] = [
        (
            "offset beyond the end",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 99999\r\nContent-Length: 3\r\n\r\nabc",
        ),
        ("negative offset", b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: -1\r\nContent-Length: 3\r\n\r\nabc"),
        (
            "offset of 5,000 digits",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: "
            + b"9" * 5000
            + b"\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            "offset of other digits",
            "POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: ٣\r\nContent-Length: 3\r\n\r\nabc".encode(),
        ),
        ("no offset", b"POST ID HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
        (
            "received more than sent",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Received: 999999\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            "received negative",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Received: -7\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            "ended, then more",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-End: 1\r\nContent-Length: 0\r\n\r\nPOST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            "end that is no number",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-End: maybe\r\nContent-Length: 0\r\n\r\n",
        ),
        ("wait of NaN", b"GET ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Wait: nan\r\n\r\n"),
        ("wait infinite", b"GET ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Wait: inf\r\n\r\n"),
        ("wait negative", b"GET ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Wait: -5\r\n\r\n"),
        ("wait of text", b"GET ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Wait: soon\r\n\r\n"),
        (
            "unknown mode",
            b"GET ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Mode: push\r\nCoder-Carrier-Wait: 0\r\n\r\n",
        ),
        (
            "offset of bytes never sent",
            b"GET ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 5000\r\nCoder-Carrier-Wait: 0\r\n\r\n",
        ),
        (
            "two readers",
            b"GET ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nCoder-Carrier-Mode: poll\r\nCoder-Carrier-Wait: 0\r\n\r\n"
            * 2,
        ),
        ("deleted twice", b"DELETE ID HTTP/1.1\r\nHost: x\r\n\r\n" * 2),
        (
            "garbage of 200 KB",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nContent-Length: 200000\r\n\r\n"
            + bytes(200_000),
        ),
        (
            "body cut by the end",
            b"POST ID HTTP/1.1\r\nHost: x\r\nCoder-Carrier-Offset: 0\r\nContent-Length: 5000\r\n\r\nabc",
        ),
    ]
    return found + [kind("an open carried stream", name, data, stage="carried") for name, data in opened]


KINDS = [*_states(), *_logins(), *_clients(), *_http(), *_websockets(), *_carried()]
