"""Wrong segments, each sent in each state of a connection."""

from __future__ import annotations

from collections.abc import Callable

from coder.mesh.core.wire.tcp import ACK, CWR, ECE, FIN, PSH, RST, SYN, URG, Options
from tests.attacks.peers.conn import MODERN, Conn

HALF = 1 << 31
Play = Callable[[Conn], None]


def raw(conn: Conn, change: Callable[[bytearray], None]) -> None:
    """An acknowledgement with some of its bytes replaced."""
    body = bytearray(conn.segment(ACK, b"data").encode())
    change(body)
    conn.attack.inner(conn.packet(bytes(body)))


def _offset(value: int) -> Play:
    def change(body: bytearray) -> None:
        body[12] = value << 4

    return lambda c: raw(c, change)


def _stamped(value: int, echo: int = 0) -> Play:
    return lambda c: c.send(ACK, b"x", options=Options(timestamps=((c.stamp + value) % 2**32, (c.echo + echo) % 2**32)))


def _three(c: Conn) -> None:
    c.attack.inner(*[c.packet(c.segment(ACK))] * 3)


SEGMENTS: dict[str, Play] = {
    "RST, exact number": lambda c: c.send(RST),
    "RST in the window": lambda c: c.send(RST, seq=1),
    "RST below the window": lambda c: c.send(RST, seq=-1),
    "RST far beyond the window": lambda c: c.send(RST, seq=HALF - 5),
    "RST with data": lambda c: c.send(RST, b"reason"),
    "RST that acknowledges unsent data": lambda c: c.send(RST | ACK, seq=3, ack=7000),
    "SYN, next number": lambda c: c.send(SYN, options=MODERN),
    "SYN in the window": lambda c: c.send(SYN, seq=9, options=MODERN),
    "SYN, older": lambda c: c.send(SYN, seq=-9000, options=MODERN),
    "SYN, newer": lambda c: c.send(SYN, seq=100_000, options=MODERN),
    "SYN with data": lambda c: c.send(SYN, b"early", options=MODERN),
    "SYN of the connection again": lambda c: c.send(SYN, seq=-1, options=MODERN),
    "SYN, ACK": lambda c: c.send(SYN | ACK, seq=-1, options=MODERN),
    "SYN, ACK of unsent data": lambda c: c.send(SYN | ACK, ack=5000, options=MODERN),
    "SYN, ACK with data and FIN": lambda c: c.send(SYN | ACK | FIN, b"all", seq=-1, options=MODERN),
    "SYN, FIN": lambda c: c.send(SYN | FIN, options=MODERN),
    "SYN, RST": lambda c: c.send(SYN | RST, options=MODERN),
    "FIN": lambda c: c.send(FIN | ACK),
    "FIN without ACK": lambda c: c.send(FIN),
    "FIN behind a hole": lambda c: c.send(FIN | ACK, seq=100),
    "FIN below the window": lambda c: c.send(FIN | ACK, seq=-2),
    "FIN of unsent data's acknowledgement": lambda c: c.send(FIN | ACK, ack=9000),
    "FIN with data up to the window's edge": lambda c: c.send(FIN | ACK, bytes(65_400)),
    "two FINs, data between": lambda c: [c.send(FIN | ACK, seq=50), c.send(ACK, b"x" * 80), c.send(FIN | ACK, seq=80)][
        0
    ],
    "ACK of unsent data": lambda c: c.send(ACK, ack=1),
    "ACK half the space ahead": lambda c: c.send(ACK, ack=HALF),
    "ACK of what was acknowledged": lambda c: c.send(ACK, ack=-1),
    "ACK half the space behind": lambda c: c.send(ACK, ack=-HALF + 1),
    "three duplicate ACKs": _three,
    "no flags": lambda c: c.send(0),
    "no ACK, data": lambda c: c.send(0, b"data"),
    "all flags": lambda c: c.send(0xFF, b"data"),
    "PSH alone": lambda c: c.send(PSH),
    "URG with a pointer beyond the data": lambda c: c.send(URG | ACK, b"x", urgent=0xFFFF),
    "URG without data": lambda c: c.send(URG | ACK, urgent=1),
    "ECE and CWR unasked": lambda c: c.send(ECE | CWR | ACK, b"x"),
    "data in order": lambda c: c.send(ACK, b"data"),
    "data behind a hole": lambda c: c.send(ACK, b"data", seq=1000),
    "data again": lambda c: c.send(ACK, b"data", seq=-4),
    "data, old and new": lambda c: c.send(ACK, b"data", seq=-2),
    "data across the window's edge": lambda c: c.send(ACK, bytes(3000), seq=64_000),
    "data beyond the window": lambda c: c.send(ACK, b"data", seq=8 << 20),
    "data half the space ahead": lambda c: c.send(ACK, b"data", seq=HALF),
    "largest segment": lambda c: c.send(ACK, bytes(65_480)),
    "keepalive with garbage": lambda c: c.send(ACK, b"\0", seq=-1),
    "window closed": lambda c: c.send(ACK, window=0),
    "window of one byte": lambda c: c.send(ACK, window=1, options=Options()),
    "timestamp missing": lambda c: c.send(ACK, b"x", options=Options()),
    "timestamp older": _stamped(-500),
    "timestamp half the space ahead": _stamped(HALF - 1),
    "timestamp exactly half the space ahead": _stamped(HALF),
    "timestamp that echoes the future": _stamped(1, HALF - 7),
    "timestamp that echoes nothing": lambda c: c.send(ACK, b"x", options=Options(timestamps=(c.stamp + 1, 0))),
    "SACK of unsent data": lambda c: c.send(sack=((1000, 3000),)),
    "SACK, inverted": lambda c: c.send(sack=((500, 100),)),
    "SACK, empty": lambda c: c.send(sack=((0, 0), (7, 7))),
    "SACK below what was acknowledged": lambda c: c.send(sack=((-900, -100),)),
    "SACK of the whole space": lambda c: c.send(sack=((1, HALF - 1), (-HALF, -1))),
    "SACK blocks that overlap": lambda c: c.send(sack=((0, 900), (100, 200), (150, 1200))),
    "SACK without permission": lambda c: c.send(options=Options(sack=((c.ack, c.ack + 100),))),
    "header of four words": _offset(4),
    "header of no words": _offset(0),
    "header longer than the segment": _offset(15),
    "cut in the header": lambda c: c.attack.inner(c.packet(c.segment(ACK).encode()[:19])),
    "ports only": lambda c: c.attack.inner(c.packet(c.segment(ACK).encode()[:4])),
    "nothing behind the IP header": lambda c: c.attack.inner(c.packet(b"")),
    "checksum of ones": lambda c: c.attack.inner(c.packet(c.segment(ACK, b"x").encode(0xFFFF))),
}
