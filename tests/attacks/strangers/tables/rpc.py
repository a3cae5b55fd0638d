"""Bytes that a hostile server or peer sends instead of yamux, dRPC and protobuf; for every process that speaks them."""

from __future__ import annotations

from struct import pack

from tests.attacks.strangers.kinds import Kind, kind

DATA, WINDOW, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
INVOKE, MESSAGE, ERROR, CANCEL, CLOSE, CLOSE_SEND = range(1, 7)


def yamux(
    type_: int, flags: int = 0, stream: int = 0, length: int | None = None, body: bytes = b"", version: int = 0
) -> bytes:
    return pack(">BBHII", version, type_, flags, stream, len(body) if length is None else length) + body


def packet(
    kind_: int, body: bytes = b"", *, stream: int = 1, message: int = 1, done: int = 1, control: int = 0
) -> bytes:
    """A dRPC frame."""
    return bytes([control << 7 | kind_ << 1 | done]) + varint(stream) + varint(message) + varint(len(body)) + body


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(found) + bytes([number])


def answer(body: bytes) -> bytes:
    """Bytes on the peer's own first stream."""
    return yamux(DATA, 0, 1, body=body)


def opened(body: bytes) -> bytes:
    """Bytes on a stream that the attacker opens."""
    return yamux(WINDOW, SYN, 2) + yamux(DATA, 0, 2, body=body)


def _frames() -> list[Kind]:
    raw: list[tuple[str, bytes]] = [
        ("nothing", b""),
        ("half a header", b"\0\0\0\0\0\0"),
        ("text", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("version 1", yamux(PING, SYN, version=1)),
        ("type 4", yamux(4)),
        ("type 255", yamux(255)),
        ("unknown flags", yamux(PING, 0xFFF0)),
        ("every flag", yamux(WINDOW, 0xF, 2)),
        ("data on stream 0", yamux(DATA, 0, 0, body=b"x")),
        ("data on a stream nobody opened", yamux(DATA, 0, 77, body=b"x")),
        ("data with a SYN", yamux(DATA, SYN, 2, body=b"x")),
        ("SYN of the other side's number", yamux(WINDOW, SYN, 1)),
        ("SYN on stream 0", yamux(WINDOW, SYN, 0)),
        ("SYN twice", yamux(WINDOW, SYN, 2) * 2),
        ("SYN with an ACK", yamux(WINDOW, SYN | ACK, 2)),
        ("ACK of nothing", yamux(WINDOW, ACK, 9)),
        ("FIN of nothing", yamux(WINDOW, FIN, 9)),
        ("RST of nothing", yamux(WINDOW, RST, 9)),
        ("RST of the first stream", yamux(WINDOW, RST, 1)),
        ("FIN of the first stream", yamux(WINDOW, FIN, 1)),
        ("data after FIN", yamux(WINDOW, FIN, 1) + yamux(DATA, 0, 1, body=b"x")),
        ("data after RST", yamux(WINDOW, RST, 1) + yamux(DATA, 0, 1, body=b"x")),
        ("more streams than the backlog", b"".join(yamux(WINDOW, SYN, 2 * n) for n in range(1, 300))),
        (
            "5,000 streams opened and reset",
            b"".join(yamux(WINDOW, SYN, 2 * n) + yamux(WINDOW, RST, 2 * n) for n in range(1, 5000)),
        ),
        ("a stream opened and closed at once", yamux(WINDOW, SYN | FIN, 2)),
        ("the last stream number", yamux(WINDOW, SYN, 0xFFFFFFFE)),
        ("falling stream numbers", yamux(WINDOW, SYN, 8) + yamux(WINDOW, SYN, 4)),
        ("data longer than a window", yamux(DATA, 0, 1, 0xFFFFFFFF)),
        ("data of a whole window", yamux(DATA, 0, 1, body=bytes(256 * 1024))),
        ("data beyond the window", yamux(DATA, 0, 1, body=bytes(65_000)) * 9),
        ("10,000 empty data frames", yamux(DATA, 0, 1) * 10_000),
        ("window update of 4 GiB", yamux(WINDOW, 0, 1, 0xFFFFFFFF)),
        ("window updates that overflow", yamux(WINDOW, 0, 1, 0x7FFFFFFF) * 4),
        ("window update of zero", yamux(WINDOW, 0, 1, 0)),
        ("3,000 pings", b"".join(yamux(PING, SYN, 0, n) for n in range(3000))),
        ("answer to no ping", yamux(PING, ACK, 0, 7)),
        ("ping without a flag", yamux(PING, 0, 0, 7)),
        ("ping on a stream", yamux(PING, SYN, 1, 7)),
        ("go away, normal", yamux(GO_AWAY, 0, 0, 0)),
        ("go away, protocol error", yamux(GO_AWAY, 0, 0, 1)),
        ("go away, unknown code", yamux(GO_AWAY, 0, 0, 99)),
        ("go away, then a stream", yamux(GO_AWAY, 0, 0, 0) + yamux(WINDOW, SYN, 2)),
        ("a body cut by the end", yamux(DATA, 0, 1, 50) + b"x"),
    ]
    return [kind("yamux", name, data) for name, data in raw]


def _packets() -> list[Kind]:
    raw: list[tuple[str, bytes]] = [
        ("type 0", answer(packet(0, b"x"))),
        ("type 63", answer(packet(63, b"x"))),
        ("control bit", answer(packet(MESSAGE, b"x", control=1))),
        ("no bytes", answer(b"")),
        ("half a frame", answer(packet(MESSAGE, b"hello")[:-2])),
        ("length of ten bytes", answer(bytes([MESSAGE << 1 | 1, 1, 1]) + b"\xff" * 10)),
        ("length beyond the limit", answer(bytes([MESSAGE << 1 | 1, 1, 1]) + varint(1 << 30))),
        ("stream number 0", answer(packet(MESSAGE, b"x", stream=0))),
        ("stream number of another call", answer(packet(MESSAGE, b"x", stream=99))),
        ("message number 0", answer(packet(MESSAGE, b"x", message=0))),
        ("message number that falls", answer(packet(MESSAGE, b"", message=9) + packet(MESSAGE, b"", message=3))),
        ("type changes within a packet", answer(packet(MESSAGE, b"a", done=0) + packet(ERROR, b"b"))),
        ("a packet without an end", answer(packet(MESSAGE, b"a", done=0) * 5000)),
        ("an invocation as an answer", answer(packet(INVOKE, b"/x"))),
        ("metadata as an answer", answer(packet(7, b"\xff\xff"))),
        ("error without a code", answer(packet(ERROR, b""))),
        ("error of broken UTF-8", answer(packet(ERROR, bytes(8) + b"\xff\xfe"))),
        ("error of 60 KB", answer(packet(ERROR, bytes(8) + b"e" * 60_000))),
        ("error with escape sequences", answer(packet(ERROR, bytes(8) + b"\x1b]0;x\x07\r\nforged=line"))),
        ("error of code 2**64-1", answer(packet(ERROR, b"\xff" * 8 + b"x"))),
        ("cancel", answer(packet(CANCEL))),
        ("close before the answer", answer(packet(CLOSE))),
        ("end before the answer", answer(packet(CLOSE_SEND))),
        ("answer after the end", answer(packet(CLOSE_SEND) + packet(MESSAGE, b"", message=2))),
        ("answer after the close", answer(packet(CLOSE) + packet(MESSAGE, b"", message=2))),
        ("two answers to one call", answer(packet(MESSAGE, b"") + packet(MESSAGE, b"", message=2))),
    ]
    found = [kind("dRPC answers", name, data) for name, data in raw]
    calls: list[tuple[str, bytes]] = [
        ("no method", opened(packet(INVOKE, b""))),
        ("unknown method", opened(packet(INVOKE, b"/coder.x/Y") + packet(MESSAGE, b"", message=2))),
        ("method of broken UTF-8", opened(packet(INVOKE, b"\xff\xfe"))),
        ("method of 60 KB", opened(packet(INVOKE, b"/" + b"a" * 60_000))),
        ("method with escape sequences", opened(packet(INVOKE, b"/\x1b[2J\r\nx"))),
        ("message without an invocation", opened(packet(MESSAGE, b"x"))),
        ("two invocations", opened(packet(INVOKE, b"/a") + packet(INVOKE, b"/b", message=2))),
        ("broken metadata", opened(packet(7, b"\xff" * 50) + packet(INVOKE, b"/a", message=2))),
        ("cancel of nothing", opened(packet(CANCEL))),
        ("close of nothing", opened(packet(CLOSE))),
        ("garbage", opened(bytes(range(256)) * 8)),
    ]
    return found + [kind("dRPC calls", name, data) for name, data in calls]


def _messages() -> list[Kind]:
    """Answers that are valid dRPC and no valid message."""
    raw: list[tuple[str, bytes]] = [
        ("no protobuf", b"\xff" * 30),
        ("unfinished length", b"\x0a\x50x"),
        ("length of 2**63", b"\x0a" + b"\xff" * 9 + b"\x01"),
        ("field number 0", b"\x02\x00"),
        ("wire type 7", b"\x0f"),
        ("a group without an end", b"\x0b" * 200),
        ("unknown fields", b"".join(varint(n << 3) + b"\1" for n in range(1000, 3000))),
        ("every field as a number", b"".join(varint(n << 3) + b"\xff\xff\xff\xff\x0f" for n in range(1, 40))),
        ("every field as text of broken UTF-8", b"".join(varint(n << 3 | 2) + b"\2\xff\xfe" for n in range(1, 40))),
        ("every field as an empty text", b"".join(varint(n << 3 | 2) + b"\0" for n in range(1, 40))),
        (
            "every field as text with control characters",
            b"".join(varint(n << 3 | 2) + b"\4\x1b[2J" for n in range(1, 40)),
        ),
        ("every field as 32 bits", b"".join(varint(n << 3 | 5) + b"\xff" * 4 for n in range(1, 40))),
        ("every field as 64 bits", b"".join(varint(n << 3 | 1) + b"\xff" * 8 for n in range(1, 40))),
        ("every field twice", b"".join((varint(n << 3 | 2) + b"\0") * 2 for n in range(1, 40))),
        ("nested 5,000 times", _nested(5000)),
        ("20,000 empty items", b"\x0a\0" * 20_000),
    ]
    return [kind("answers that are no message", name, answer(packet(MESSAGE, data[:65_000]))) for name, data in raw]


def _nested(depth: int) -> bytes:
    body = b""
    for _ in range(depth):
        if len(body) > 60_000:
            break
        body = b"\x0a" + varint(len(body)) + body
    return body


KINDS = [*_frames(), *_packets(), *_messages()]
