"""Connections that change state while one process passes them to another.

Each of four destinations (a relay client, a carried stream, a terminal, a WireGuard client's request) meets each state:
bytes behind the head, a second request before or behind, an end or a reset at each moment, a body, a broken head.
"""

from __future__ import annotations

from tests.attacks.tries import Step, WireTry, wire

_HOST = b"Host: {host}\r\n"
_TOKEN = b"Coder-Session-Token: {token}\r\n"
_WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
_OWN = b"GET /api/v2/buildinfo HTTP/1.1\r\n" + _HOST + b"\r\n"
_POST_OWN = b"POST /api/v2/authcheck HTTP/1.1\r\n" + _HOST + _TOKEN + b"Content-Length: 2\r\n\r\n{}"
_PTY = b"/api/v2/workspaceagents/00000000-0000-0000-0000-000000000001/pty"

HEADS: dict[str, bytes] = {
    "a relay client": b"GET /derp HTTP/1.1\r\n" + _HOST + b"Connection: Upgrade\r\nUpgrade: DERP\r\n",
    "a terminal": b"GET " + _PTY + b"?reconnect=x HTTP/1.1\r\n" + _HOST + _TOKEN + _WEBSOCKET,
    "a carried stream": b"GET /derp/streams/0001abcdef HTTP/1.1\r\n" + _HOST,
    "a WireGuard client": b"GET /api/v2/users/me/wireguard-clients HTTP/1.1\r\n" + _HOST + _TOKEN,
}


def _states(head: bytes) -> dict[str, tuple[Step, ...]]:
    whole = head + b"\r\n"
    broken = head.replace(b"HTTP/1.1", b"HTTP/1.0")
    return {
        "alone": (whole,),
        "reset at once": (whole, "reset"),
        "closed at once": (whole, "close"),
        "half closed at once": (whole, "half"),
        "half closed after a while": (whole, "pause", "half"),
        "reset after a while": (whole, "pause", "reset"),
        "reset after the answer": (whole, "read", "reset"),
        "garbage behind it": (whole + bytes(range(256)) * 100,),
        "garbage after a while": (whole, "pause", bytes(range(256)) * 100),
        "another request behind it": (whole + _OWN,),
        "another request before it": (_OWN + whole,),
        "a body before it": (_POST_OWN + whole,),
        "an unfinished body before it": (_POST_OWN[:-1], whole, "reset"),
        "50 requests before it": (_OWN * 50 + whole, "reset"),
        "twice": (whole + whole,),
        "20 times, reset": (whole * 20, "reset"),
        "byte by byte": (*(whole[at : at + 1] for at in range(len(whole))), "reset"),
        "head unfinished, reset": (head, "reset"),
        "head unfinished, half closed": (head, "half"),
        "in HTTP/1.0": (broken + b"\r\n",),
        "with a length": (head + b"Content-Length: 5\r\n\r\nhello" + _OWN,),
        "with a length, body missing": (head + b"Content-Length: 500000\r\n\r\n" + bytes(1000), "reset"),
        "with chunks": (head + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + _OWN,),
        "with broken chunks": (head + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",),
        "with an expectation": (head + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", "pause", b"hello"),
        "with two lengths": (head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",),
        "with a folded line": (head + b"X: a\r\n b\r\n\r\n",),
        "with 490 more lines": (head + b"X: y\r\n" * 490 + b"\r\n",),
        "with a value of 50 KiB": (head + b"X: " + b"y" * 50000 + b"\r\n\r\n",),
        "with a value in latin-1": (head + b"X: \xff\r\n\r\n",),
        "with a forged sibling": (head + b"Coder-Replica: 00000000-0000-0000-0000-000000000000\r\n\r\n",),
        "200 KiB behind it, reset": (whole + bytes(200000), "reset"),
        "answer not read": (whole + _OWN * 300, "pause", "close"),
    }


STREAM_IDS: dict[str, bytes] = {
    "no id": b"",
    "a short id": b"0",
    "a negative number": b"-001abc",
    "a number with underscores": b"0_01abc",
    "a number in other digits": "٠٠٠١abc".encode(),
    "the number of no process": b"ffffabc",
    "the number of the loops": b"0003abc",
    "the number of the keeper": b"0004abc",
    "an id of 50 KiB": b"0001" + b"a" * 50000,
    "escaped digits": b"%30%30%30%31abc",
    "a NUL": b"0001%00",
    "parent folders": b"../../derp",
    "a query": b"0001?x=" + b"y" * 100,
    "spaces around the number": b"%20%201abc",
}
TRIES: list[WireTry] = [
    wire("api", f"handover of {kind}: {state}", *steps)
    for kind, head in HEADS.items()
    for state, steps in _states(head).items()
]
TRIES += [
    wire(
        "api",
        f"carried stream with {name}",
        method + b" /derp/streams/" + text + b" HTTP/1.1\r\n" + _HOST + b"Content-Length: 0\r\n\r\n",
    )
    for name, text in STREAM_IDS.items()
    for method in (b"POST",)
]
