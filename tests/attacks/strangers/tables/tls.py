"""Tries beneath TLS on connections that were handed over: records that no TLS library sends, at a relay and a terminal.

The process that ends TLS keeps the connection and passes its bytes on; these tries break its side while the other side
goes on. `RAW` before a piece: sent without encryption.
"""

from __future__ import annotations

from tests.attacks.strangers.kinds import Kind, kind
from tests.attacks.strangers.place import RAW

_RECORDS: list[tuple[str, bytes]] = [
    ("application data that cannot be decrypted", b"\x17\x03\x03\x00\x40" + bytes(64)),
    ("application data shorter than its tag", b"\x17\x03\x03\x00\x01\x00"),
    ("an empty record", b"\x17\x03\x03\x00\x00"),
    ("1,000 empty records", b"\x17\x03\x03\x00\x00" * 1000),
    ("a record longer than allowed", b"\x17\x03\x03\xff\xff" + bytes(65535)),
    ("a plain alert that closes", b"\x15\x03\x03\x00\x02\x01\x00"),
    ("a plain fatal alert", b"\x15\x03\x03\x00\x02\x02\x28"),
    ("1,000 plain warnings", b"\x15\x03\x03\x00\x02\x01\x5a" * 1000),
    ("a second hello", b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(159)),
    ("a plain key update", b"\x16\x03\x03\x00\x05\x18\x00\x00\x01\x01"),
    ("change of ciphers", b"\x14\x03\x03\x00\x01\x01"),
    ("1,000 changes of ciphers", b"\x14\x03\x03\x00\x01\x01" * 1000),
    ("a heartbeat", b"\x18\x03\x03\x00\x03\x01\x40\x00"),
    ("an unknown type", b"\xff\x03\x03\x00\x01\x00"),
    ("an unknown version", b"\x17\x09\x09\x00\x40" + bytes(64)),
    ("plain HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    ("bytes of chance", bytes(range(256)) * 20),
    ("64 KiB of zeros", bytes(65536)),
]
_CUT: list[tuple[str, bytes]] = [
    ("one byte of a record", b"\x17"),
    ("a record's head", b"\x17\x03\x03\x40\x00"),
    ("half a record", b"\x17\x03\x03\x00\x40" + bytes(32)),
]
_STATES = {"client": "relay", "websocket": "relay", "terminal": "terminal", "switched": "application"}


def _kinds(stages: tuple[str, ...]) -> list[Kind]:
    found = []
    for stage in stages:
        group = f"TLS records after an upgrade: {_STATES[stage]}"
        suffix = " of a WebSocket" if stage == "websocket" else ""
        found += [kind(group, name + suffix, RAW + data, stage=stage) for name, data in _RECORDS]
        for name, data in _CUT:
            for then in ("read", "reset", "hold"):
                found.append(kind(group, f"{name}, then {then}{suffix}", RAW + data, stage=stage, then=then))
    return found


RELAY = _kinds(("client", "websocket"))
EDGE = _kinds(("terminal", "switched"))
