"""TLS: records, hellos and ends of a connection that no client sends."""

from __future__ import annotations

import struct

from tests.attacks.tries import Step, WireTry, wire


def _record(kind: int, body: bytes, version: bytes = b"\x03\x01") -> bytes:
    return bytes([kind]) + version + struct.pack(">H", len(body) & 0xFFFF) + body


def _extension(kind: int, body: bytes) -> bytes:
    return struct.pack(">HH", kind, len(body)) + body


def _name(text: bytes, kind: int = 0) -> bytes:
    entry = bytes([kind]) + struct.pack(">H", len(text)) + text
    return _extension(0, struct.pack(">H", len(entry)) + entry)


def _alpn(*names: bytes) -> bytes:
    listed = b"".join(bytes([len(name)]) + name for name in names)
    return _extension(16, struct.pack(">H", len(listed)) + listed)


_GROUPS = _extension(10, b"\0\x04\0\x1d\0\x17")
_SIGNATURES = _extension(13, b"\0\x08\x04\x03\x08\x04\x04\x01\x08\x05")
_VERSIONS = _extension(43, b"\x04\x03\x04\x03\x03")
_SHARE = _extension(51, b"\0\x26\0\x24\0\x1d\0\x20" + b"\x09" + bytes(31))
_BASE = _GROUPS + _SIGNATURES + _VERSIONS + _SHARE


def _hello(
    extensions: bytes = _BASE,
    ciphers: bytes = b"\x13\x01\x13\x02\xc0\x2b\xc0\x2f",
    version: bytes = b"\x03\x03",
    session: bytes = bytes(32),
    compression: bytes = b"\0",
) -> bytes:
    body = version + bytes(32) + bytes([len(session)]) + session
    body += struct.pack(">H", len(ciphers)) + ciphers + bytes([len(compression)]) + compression
    body += struct.pack(">H", len(extensions) & 0xFFFF) + extensions
    return b"\x01" + struct.pack(">I", len(body))[1:] + body


def _sent(hello: bytes) -> bytes:
    return b"".join(_record(22, hello[at : at + 16000]) for at in range(0, len(hello), 16000))


_OK = _sent(_hello())
HANDSHAKES: dict[str, tuple[Step, ...]] = {
    "nothing, closed": ("close",),
    "nothing, reset": ("reset",),
    "plain HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",),
    "one byte": (b"\x16", "half"),
    "a record's head only": (b"\x16\x03\x01\x02\x00", "half"),
    "an unknown record": (_record(99, b"x"),),
    "an empty handshake record": (_record(22, b""),),
    "1,000 empty records": (_record(22, b"") * 1000,),
    "a record longer than allowed": (b"\x16\x03\x01\xff\xff" + bytes(65535),),
    "a record of version 9.9": (_record(22, _hello(), b"\x09\x09"),),
    "an SSLv2 hello": (
        b"\x80\x2e\x01\0\x02\0\x15\0\0\0\x10\x01\0\x80\x02\0\x80\x03\0\x80\x04\0\x80\x05\0\x80\x06\0\x40\x07\0\xc0"
        + bytes(16),
    ),
    "data before the hello": (_record(23, b"hello"),),
    "an alert before the hello": (_record(21, b"\x02\x28"),),
    "a warning alert, 1,000 times": (_record(21, b"\x01\x5a") * 1000,),
    "an alert of one byte": (_record(21, b"\x02"),),
    "ChangeCipherSpec before the hello": (_record(20, b"\x01"),),
    "1,000 ChangeCipherSpec": (_OK, _record(20, b"\x01") * 1000),
    "a heartbeat": (_record(24, b"\x01\x40\x00"),),
    "a heartbeat after the hello": (_OK, _record(24, b"\x01\x40\x00")),
    "a handshake of 16 MiB announced": (_record(22, b"\x01\xff\xff\xff"),),
    "a handshake longer than its records": (_sent(_hello())[:60], "half"),
    "a server's hello": (_record(22, b"\x02" + _hello()[1:]),),
    "Finished first": (_record(22, b"\x14\0\0\x0c" + bytes(12)),),
    "a certificate first": (_record(22, b"\x0b\0\0\x03\0\0\0"),),
    "HelloRequest first": (_record(22, b"\0\0\0\0"),),
    "KeyUpdate in the clear": (_OK, _record(22, b"\x18\0\0\x01\x01")),
    "two hellos": (_OK + _OK,),
    "hello, then HTTP in the clear": (_OK + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",),
    "hello, then data without encryption": (_OK + _record(23, b"GET / HTTP/1.1\r\n\r\n"),),
    "hello, then garbage": (_OK, "pause", _record(23, bytes(range(200)))),
    "hello, closed": (_OK, "close"),
    "hello, reset": (_OK, "reset"),
    "hello, half closed": (_OK, "half"),
    "hello, answer not read": (_OK, "pause", "close"),
    "hello byte by byte": tuple(_OK[at : at + 1] for at in range(len(_OK))),
    "hello in records of one byte": (b"".join(_record(22, _hello()[at : at + 1]) for at in range(len(_hello()))),),
    "no ciphers": (_sent(_hello(ciphers=b"")),),
    "half a cipher": (_sent(_hello(ciphers=b"\x13")),),
    "unknown ciphers": (_sent(_hello(ciphers=b"\xfa\xfa" * 100)),),
    "20,000 ciphers": (_sent(_hello(ciphers=b"\x13\x01" * 20000)),),
    "null ciphers": (_sent(_hello(ciphers=b"\0\0\0\x01\0\x02")),),
    "export ciphers": (_sent(_hello(extensions=_GROUPS, ciphers=b"\0\x03\0\x06\0\x08")),),
    "a fallback signal": (
        _sent(_hello(extensions=_GROUPS + _SIGNATURES, version=b"\x03\x01", ciphers=b"\x56\0\xc0\x2f")),
    ),
    "TLS 1.0": (_sent(_hello(extensions=_GROUPS, version=b"\x03\x01")),),
    "SSL 3": (_sent(_hello(extensions=b"", version=b"\x03\0")),),
    "version 0": (_sent(_hello(extensions=b"", version=b"\0\0")),),
    "no versions in common": (_sent(_hello(extensions=_GROUPS + _extension(43, b"\x02\x7f\x1c"))),),
    "an empty list of versions": (_sent(_hello(extensions=_GROUPS + _extension(43, b"\0"))),),
    "a session id of 255": (_sent(_hello(session=bytes(255))),),
    "no compression": (_sent(_hello(compression=b"")),),
    "deflate": (_sent(_hello(extensions=_GROUPS + _SIGNATURES, compression=b"\x01\0")),),
    "lying length of extensions": (_sent(_hello()[:-4]),),
    "an extension twice": (_sent(_hello(extensions=_BASE + _GROUPS)),),
    "10,000 unknown extensions": (
        _sent(_hello(extensions=_BASE + b"".join(_extension(9000 + n, b"") for n in range(10000)))),
    ),
    "an extension of 60 KiB": (_sent(_hello(extensions=_BASE + _extension(9999, bytes(60000)))),),
    "a key share of another size": (
        _sent(_hello(extensions=_GROUPS + _SIGNATURES + _VERSIONS + _extension(51, b"\0\x05\0\x1d\0\x01\0"))),
    ),
    "a key share of zeros": (
        _sent(_hello(extensions=_GROUPS + _SIGNATURES + _VERSIONS + _extension(51, b"\0\x24\0\x1d\0\x20" + bytes(32)))),
    ),
    "a point that is not on the curve": (
        _sent(
            _hello(extensions=_GROUPS + _SIGNATURES + _VERSIONS + _extension(51, b"\0\x45\0\x17\0\x41\x04" + bytes(64)))
        ),
    ),
    "no key share": (_sent(_hello(extensions=_GROUPS + _SIGNATURES + _VERSIONS + _extension(51, b"\0\0"))),),
    "a second hello unlike the first": (
        _sent(_hello(extensions=_GROUPS + _SIGNATURES + _VERSIONS + _extension(51, b"\0\0"))),
        "pause",
        _OK,
    ),
    "groups nobody has": (
        _sent(_hello(extensions=_SIGNATURES + _VERSIONS + _SHARE + _extension(10, b"\0\x02\xfa\xfa"))),
    ),
    "signatures nobody has": (
        _sent(_hello(extensions=_GROUPS + _VERSIONS + _SHARE + _extension(13, b"\0\x02\xfa\xfa"))),
    ),
    "a ticket of garbage": (_sent(_hello(extensions=_BASE + _extension(35, bytes(5000)))),),
    "a pre-shared key of garbage": (
        _sent(
            _hello(
                extensions=_BASE
                + _extension(45, b"\x01\x01")
                + _extension(41, b"\0\x0a\0\x04abcd" + bytes(4) + b"\0\x21\x20" + bytes(32))
            )
        ),
    ),
    "early data without a key": (_sent(_hello(extensions=_BASE + _extension(42, b""))) + _record(23, bytes(1000)),),
    "a cookie": (_sent(_hello(extensions=_BASE + _extension(44, b"\0\x04abcd"))),),
    "a status request": (_sent(_hello(extensions=_BASE + _extension(5, b"\x01\0\0\0\0"))),),
    "a renegotiation secret": (_sent(_hello(extensions=_BASE + _extension(0xFF01, b"\x0c" + bytes(12)))),),
    "post-handshake authentication": (_sent(_hello(extensions=_BASE + _extension(49, b""))),),
    "no SNI": (_OK,),
    "an empty name": (_sent(_hello(extensions=_BASE + _name(b""))),),
    "an empty list of names": (_sent(_hello(extensions=_BASE + _extension(0, b"\0\0"))),),
    "a name of 255": (_sent(_hello(extensions=_BASE + _name(b"a" * 255))),),
    "a name of 20,000": (_sent(_hello(extensions=_BASE + _name(b"a" * 20000))),),
    "a name with a NUL": (_sent(_hello(extensions=_BASE + _name(b"localhost\0evil"))),),
    "a name that is not ASCII": (_sent(_hello(extensions=_BASE + _name(b"\xff\xfe\xfd"))),),
    "a name in UTF-8": (_sent(_hello(extensions=_BASE + _name("é.test".encode()))),),
    "a broken punycode name": (_sent(_hello(extensions=_BASE + _name(b"xn--\x80"))),),
    "an empty punycode label": (_sent(_hello(extensions=_BASE + _name(b"xn--"))),),
    "a punycode label of 60": (_sent(_hello(extensions=_BASE + _name(b"xn--" + b"9" * 59))),),
    "a name of empty labels": (_sent(_hello(extensions=_BASE + _name(b"a..b"))),),
    "a name that begins with a dot": (_sent(_hello(extensions=_BASE + _name(b".localhost"))),),
    "a label of 64": (_sent(_hello(extensions=_BASE + _name(b"a" * 64 + b".test"))),),
    "a name of dots": (_sent(_hello(extensions=_BASE + _name(b"." * 200))),),
    "a wildcard as name": (_sent(_hello(extensions=_BASE + _name(b"*.localhost"))),),
    "an address as name": (_sent(_hello(extensions=_BASE + _name(b"127.0.0.1"))),),
    "a name of another kind": (_sent(_hello(extensions=_BASE + _name(b"localhost", 7))),),
    "two names": (_sent(_hello(extensions=_BASE + _extension(0, b"\0\x0a\0\0\x02ab\0\0\x02cd"))),),
    "a name with control characters": (_sent(_hello(extensions=_BASE + _name(b"\x1b]0;x\x07"))),),
    "ALPN h2 only": (_sent(_hello(extensions=_BASE + _alpn(b"h2"))),),
    "ALPN of garbage": (_sent(_hello(extensions=_BASE + _alpn(b"\xff" * 200))),),
    "ALPN of an empty name": (_sent(_hello(extensions=_BASE + _extension(16, b"\0\x01\0"))),),
    "ALPN with a lying length": (_sent(_hello(extensions=_BASE + _extension(16, b"\0\xff\x08http/1.1"))),),
    "ALPN of 5,000 names": (_sent(_hello(extensions=_BASE + _alpn(*[b"http/1.1"] * 5000))),),
    "ALPN acme": (_sent(_hello(extensions=_BASE + _alpn(b"acme-tls/1"))),),
}
_GET = b"GET /api/v2/buildinfo HTTP/1.1\r\nHost: {host}\r\n"
_UP = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
INSIDE: dict[str, tuple[Step, ...]] = {
    "request, reset": (_GET + b"\r\n", "reset"),
    "request, TCP half closed without close_notify": (_GET + b"\r\n", "half"),
    "half a head, closed without close_notify": (_GET, "close"),
    "50 pipelined requests, reset": ((_GET + b"\r\n") * 50, "reset"),
    "garbage": (bytes(range(256)) * 100,),
    "TLS in TLS": (_OK,),
    "a body in pieces, reset": (
        b"POST /api/v2/users/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        "reset",
    ),
    "a WebSocket, reset": (
        b"GET /api/v2/tailnet?version=2.0 HTTP/1.1\r\nHost: x\r\nCoder-Session-Token: {token}\r\n" + _UP + b"\r\n",
        "reset",
    ),
    "a relay, frames of garbage": (
        b"GET /derp HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: DERP\r\n\r\n",
        "read",
        bytes(5000),
    ),
    "the answer is not read": ((_GET + b"\r\n") * 400, "close"),
}

RAW_TLS: list[WireTry] = [
    wire("api", f"TLS handshake: {name}", *steps, carrier="raw-tls") for name, steps in HANDSHAKES.items()
]
TRIES = [*RAW_TLS, *(wire("api", f"inside TLS: {name}", *steps, carrier="tls") for name, steps in INSIDE.items())]
