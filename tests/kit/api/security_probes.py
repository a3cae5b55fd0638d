"""Probes of what an attacker could observe or forge.

`count_work` counts statements and hashes by which two answers could be told apart, `handshake` returns the answer to a
WebSocket handshake, `forged` changes one letter of something signed or secret.
"""

from __future__ import annotations

import base64
import os
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import h11
import httpx
import pytest
import trio
from quart import has_request_context, has_websocket_context

from coder.coderd.services.access import passwords
from coder.coderd.store.engine.database import Database


class _CountingTx:
    """A transaction that writes down what is asked of it."""

    def __init__(self, tx: Any, work: Counter[str], name: str) -> None:
        self._tx, self._work, self._name = tx, work, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def execute(self, *args: Any, **rest: Any) -> Any:
        self._work[f"statements of {self._name}"] += 1
        return await self._tx.execute(*args, **rest)


def count_work(database: Database, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts from now on what views do; what the server does by itself is left out. Clear it before each request."""
    work: Counter[str] = Counter()

    def counting(original: Any) -> Any:
        async def asked(fn: Any, *args: Any, **rest: Any) -> Any:
            if not (has_request_context() or has_websocket_context()):
                return await original(fn, *args, **rest)
            name = getattr(fn, "__name__", "work")
            work[f"transactions of {name}"] += 1

            async def counted(tx: Any, *args: Any, **rest: Any) -> Any:
                return await fn(_CountingTx(tx, work, name), *args, **rest)

            return await original(counted, *args, **rest)

        return asked

    monkeypatch.setattr(database, "read", counting(database.read))
    monkeypatch.setattr(database, "run", counting(database.run))
    verify = passwords._verify

    def verified(hashed: str, password: str) -> bool:
        work["password hashes"] += 1
        return verify(hashed, password)

    monkeypatch.setattr(passwords, "_verify", verified)
    return work


async def handshake(url: str, path: str, token: str, name: str = "Coder-Session-Token") -> httpx.Response:
    """The answer's head (and its body when it is a refusal). Raises trio.TooSlowError after 10 s of silence."""
    parts = urlsplit(url)
    protocol = "DERP" if path.startswith("/derp") else "websocket"
    headers = [
        ("Host", parts.netloc),
        ("Connection", "Upgrade"),
        ("Upgrade", protocol),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
        (name, token),
    ]
    connection = h11.Connection(h11.CLIENT)
    body = b""
    with trio.fail_after(60):
        async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 80) as stream:
            request = h11.Request(method="GET", target=path, headers=headers)
            await stream.send_all((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
            head: h11.Response | h11.InformationalResponse | None = None
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(bytes(await stream.receive_some()))
                elif isinstance(event, h11.InformationalResponse | h11.Response):
                    head = event
                    if event.status_code == 101:
                        break
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                else:
                    break
    assert head is not None
    return httpx.Response(head.status_code, headers=list(head.headers), content=body)


def forged(text: str) -> str:
    """The same with one letter changed, which stands where it counts: base64 ignores some bits of a last letter, and a
    letter that is always the same is now and then the right one."""
    at = len(text) - 8
    return text[:at] + ("B" if text[at] != "B" else "C") + text[at + 1 :]
