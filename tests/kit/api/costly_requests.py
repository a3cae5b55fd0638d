"""Requests that are costly for a server, made from its table of routes; and a measure of what it spent.

A costly request is large, deep, repeated, written in many digits, or compressed. `Spent` is a trio instrument: the most
computing time that one step of the server's tasks took, and the most memory that the process had.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import trio

from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.coderd.http.server.declarations import FORM, Route, Search, route_of
from coder.domain.access.route_scopes import Unscoped
from tests.kit.api.api_description import application

KNOWN = 1 << 20
"Bytes people who signed in may send nearly everywhere."
DIGITS = "9" * 5000
_BOMB = gzip.compress(bytes(16 << 20), mtime=0)
_HEADERS = "A: b\r\n" * 8_000
_COOKIES = f"Cookie: {'a=b; ' * 10_000}\r\n"
_PLACES = {"user": "me", "organization": "default"}
_SELF_ENDING = frozenset({"/api/v2/users/logout"})


@dataclass(frozen=True)
class CostlyRequest:
    """One request, byte for byte."""

    kind: str
    method: str
    target: str
    body: bytes = b""
    headers: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.method} {self.target[:80]}"

    def encoded(self, token: str) -> bytes:
        fields = f"Host: x\r\nConnection: close\r\n{self.headers}"
        if token:
            fields += f"Coder-Session-Token: {token}\r\n"
        if self.body:
            fields += f"Content-Length: {len(self.body)}\r\n"
        return f"{self.method} {self.target} HTTP/1.1\r\n{fields}\r\n".encode() + self.body


def routes() -> Iterator[tuple[str, Route]]:
    """(path with something in its places, declaration) of everything that is no WebSocket."""
    app = application()
    for rule in app.url_map.iter_rules():
        said = route_of(app.view_functions[rule.endpoint])
        if said is not None and not said.websocket and rule.rule not in _SELF_ENDING:
            yield re.sub(r"<(?:[^:>]*:)?([^>]*)>", _place, rule.rule), said


def _place(found: re.Match[str]) -> str:
    return _PLACES.get(found[1], "00000000-0000-4000-8000-000000000000" if found[0].startswith("<id:") else "x")


def is_public(said: Route) -> bool:
    return isinstance(said.scope, Unscoped) and said.scope is not Unscoped.ANY_KEY


def costly_requests(path: str, said: Route) -> Iterator[CostlyRequest]:
    """Every kind for one route; nothing is deleted."""
    for method in said.methods:
        if method == "DELETE":
            continue
        yield from _in_the_head(method, path, said)
        if said.limit:
            yield from _in_the_body(method, path, said)


def _in_the_head(method: str, path: str, said: Route) -> Iterator[CostlyRequest]:
    yield CostlyRequest("many parameters", method, f"{path}?{'a=1&' * 10_000}")
    yield CostlyRequest("many headers", method, path, headers=_HEADERS)
    yield CostlyRequest("many cookies", method, path, headers=_COOKIES)
    for name, kind in said.query.items():
        yield CostlyRequest(f"digits in {name}", method, f"{path}?{name}={DIGITS}")
        if isinstance(kind, Search):
            yield CostlyRequest("deep search", method, f"{path}?{name}={'(' * 30_000}")
            yield CostlyRequest("many terms", method, f"{path}?{name}={'a:b+' * 10_000}")
            for key in kind.keys:
                yield CostlyRequest(f"digits in {key}", method, f"{path}?{name}={key}:{DIGITS}")


def _in_the_body(method: str, path: str, said: Route) -> Iterator[CostlyRequest]:
    json_type, size = "Content-Type: application/json\r\n", min(said.limit, KNOWN)
    for kind, body in _documents(size):
        yield CostlyRequest(kind, method, path, body, json_type)
    yield CostlyRequest("compressed", method, path, _BOMB, f"{json_type}Content-Encoding: gzip\r\n")
    for value in (DIGITS, int("9" * 4000), "* " * 5000, "(" * 5000):
        filled = json.dumps(dict.fromkeys(_names(said.body), value)).encode()
        yield CostlyRequest("digits and signs", method, path, filled, json_type)
    if said.takes == FORM:
        form = f"Content-Type: {FORM}\r\n"
        for fields in (51, 10_000):
            yield CostlyRequest("many fields", method, path, b"&".join(b"a%d=b" % i for i in range(fields)), form)
        yield CostlyRequest("large field", method, path, b"grant_type=" + b"x" * (size - 11), form)


@functools.cache
def _documents(size: int) -> tuple[tuple[str, bytes], ...]:
    """(kind, body) of those that ask only how much a route takes: all routes that take as much share one body, which
    saves seconds and half a gigabyte where requests to every route are listed."""
    keys = b",".join(b'"k%07d":0' % number for number in range(size // 13))
    return (
        ("large", b'{"a":"' + b"x" * size + b'"}'),
        ("deep", b'{"a":' * (size // 5)),
        ("deep lists", b"[" * size),
        ("many", b'{"a":[' + b"{}," * (size // 3 - 4) + b"{}]}"),
        ("many keys", b"{" + keys + b"}"),
    )


def _names(kind: Any) -> list[str]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [one.encode_name for one in msgspec.structs.fields(kind)]
    return ["a"]


async def answer_of(url: str, request: bytes, patience: float = 60.0) -> bytes:
    """Everything the server says until it closes."""
    parts = urlsplit(url)
    said = b""
    with trio.fail_after(patience):
        stream = await trio.open_tcp_stream(parts.hostname or "", parts.port or 0)
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(_send, stream, request)
            with contextlib.suppress(trio.BrokenResourceError):
                while piece := await stream.receive_some(65536):
                    said += piece
            nursery.cancel_scope.cancel()
    return said


async def _send(stream: trio.SocketStream, request: bytes) -> None:
    with contextlib.suppress(trio.BrokenResourceError):
        await stream.send_all(request)


@dataclass(eq=False)
class Spent(trio.abc.Instrument):
    """What the server's tasks took while it was installed; the tests' own do not count."""

    most: float = 0.0
    by: str = ""
    during: str = ""
    "What is being tried; set by the test."
    worst: str = ""
    resident_before: int = 0
    _began: float = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        took = time.thread_time() - self._began
        code = getattr(task.coro, "cr_code", None)
        ours = task.name.startswith("<test ") or "/tests/" in getattr(code, "co_filename", "")
        if took > self.most and not ours:
            self.most, self.by, self.worst = took, task.name, self.during

    @property
    def grown(self) -> int:
        """Bytes of memory at most above the beginning."""
        return _status("VmHWM") - self.resident_before


@contextlib.contextmanager
def measured() -> Iterator[Spent]:
    """Installs a `Spent` for the block."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    spent = Spent(resident_before=_status("VmRSS"))
    trio.lowlevel.add_instrument(spent)
    try:
        yield spent
    finally:
        trio.lowlevel.remove_instrument(spent)


def _status(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


assert PUBLIC_LIMIT < KNOWN
