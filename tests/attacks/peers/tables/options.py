"""Malformed TCP options: in a SYN, and in a segment of an open connection."""

from __future__ import annotations

from collections.abc import Callable

from coder.mesh.core.wire.tcp import ACK, SYN, Options
from tests.attacks.peers.conn import Conn

KNOWN = {"MSS": (2, 4), "window scale": (3, 3), "SACK permitted": (4, 2), "SACK": (5, 10), "timestamps": (8, 10)}
KNOWN |= {"experiment": (253, 6)}

OPTIONS: dict[str, bytes] = {}
for _name, (_kind, _size) in KNOWN.items():
    _value = bytes(range(1, _size - 1))
    OPTIONS |= {
        f"{_name}: length 0": bytes((_kind, 0)) + _value,
        f"{_name}: length 1": bytes((_kind, 1)) + _value,
        f"{_name}: one byte short": bytes((_kind, _size - 1)) + _value[:-1],
        f"{_name}: one byte long": bytes((_kind, _size + 1)) + _value + b"\1",
        f"{_name}: over the end": bytes((_kind, 40)) + _value,
        f"{_name}: cut behind its kind": b"\1\1\1" + bytes((_kind,)),
        f"{_name}: twice": (bytes((_kind, _size)) + _value) * 2,
    }
OPTIONS |= {
    "forty bytes of nothing": bytes([1]) * 40,
    "end, then garbage": b"\0" + bytes(range(200, 239)),
    "unknown kinds": b"".join(bytes((kind, 2)) for kind in range(100, 120)),
    "TCP MD5": b"\x13\x12" + bytes(16),
    "TCP authentication": b"\x1d\x10" + bytes(14),
    "fast open cookie": b"\x22\x0a" + bytes(8),
    "multipath": b"\x1e\x0c" + bytes(10),
    "user timeout of no time": b"\x1c\x04\0\0",
    "MSS 0": b"\2\4\0\0",
    "MSS 1": b"\2\4\0\1",
    "MSS 65535": b"\2\4\xff\xff",
    "scale 15": b"\3\3\x0f\1",
    "scale 255": b"\3\3\xff\1",
    "five SACK blocks": b"\5\x2a" + bytes(38),
    "timestamps of all ones": b"\1\1\x08\x0a" + b"\xff" * 8,
    "same stack that takes nothing": b"\xfd\6\x43\x6d\0\0",
    "same stack that takes 65535": b"\2\4\4\xc4\xfd\6\x43\x6d\xff\xff",
    "another experiment": b"\xfd\6\0\1\xff\xff",
}


def _with(options: bytes) -> Callable[[bytes], bytes]:
    padded = options[:40] + b"\0" * (-len(options[:40]) & 3)

    def change(segment: bytes) -> bytes:
        return segment[:12] + bytes([(20 + len(padded)) << 2]) + segment[13:20] + padded + segment[20:]

    return change


def in_syn(conn: Conn, options: bytes) -> None:
    """Open with the options; if that works, have the victim send and receive."""
    conn.options = Options()
    conn.attack.inner(conn.packet(_with(options)(conn.segment(SYN, options=Options()).encode())))
    conn.seq += 1
    heard = conn.hear()
    if heard and heard[-1].flags & SYN:
        conn.ack = heard[-1].seq + 1
        conn.send(ACK, b"x")
        if conn.socket is not None and conn.socket.connected:
            conn.socket.write_nowait(bytes(5000))
        conn.send(ACK, b"y", seq=1)
        conn.hear()


def in_segment(conn: Conn, options: bytes) -> None:
    conn.attack.inner(conn.packet(_with(options)(conn.segment(ACK, b"data", options=Options()).encode())))
