"""Characters that a database, encoding or terminal rejects, in every text of a request: refused or stored, never a 500.

The places are generated from the routes: path parameters, fields of bodies, parameters and terms of queries. Decoders
are tested without a server. On the server each place is tested with a NUL, which passes decoders and fails in the
database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import trio

from coder.api.base.refusals import Refusal
from coder.coderd.http.server.declarations import EVENTS
from coder.coderd.http.server.json import parse_body
from tests.kit.api.api_description import application
from tests.kit.api.id_fields import PATH, options, put, text_places, texts_of
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.two_organizations import foreign_world
from tests.unit.conformance.test_foreign_ids_in_requests import Asker

NUL = "x\x00y"
ODD = (NUL, "x\ud800y", "\udc00", "\udfff\ud800", "\u202ex", "\ufeff", "\uffff", "x" * 70_000, "\U0010ffff" * 20_000)
"""NUL, lone surrogates, bidirectional controls, non-characters, long texts."""
_NOT_ASKED = {"/api/v2/users/logout", "/api/v2/debug/profile"}
"""Routes that end the caller's session, or take long by design."""


def _routes() -> Iterator[tuple[str, Any]]:
    app = application()
    for rule in app.url_map.iter_rules():
        declared = getattr(app.view_functions[rule.endpoint], "route", None)
        if declared is not None and not declared.websocket:
            yield re.sub(r"<(?:[^:<>]*:)?([^<>]*)>", r"{\1}", rule.rule), declared


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (*_texts(key), *_texts(item))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def test_stored_texts_are_valid() -> None:
    """Every text field of every type of request."""
    asked = taken = 0
    wrong = []
    for rule, declared in _routes():
        for kind in options(declared.body):
            if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
                continue
            for path in dict.fromkeys(texts_of(kind, ())):
                for text in ODD:
                    asked += 1
                    raw = json.dumps(put({}, path, text)).encode()
                    try:
                        body = parse_body(raw, kind, declared.required)
                    except Refusal:
                        continue
                    taken += 1
                    bad = [item for item in _texts(msgspec.to_builtins(body)) if not _is_writable(item)]
                    if bad:
                        wrong.append(f"{rule} {path} {text[:20]!r}: {bad[0][:20]!r}")
    assert asked > 1000 and taken > 500, (asked, taken)
    assert not wrong, "\n".join(wrong)


def _is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
async def test_odd_letters_cause_no_error(whole: bool) -> None:
    """An authorized caller sends an otherwise valid request; the same request with a plain text is no error either. For
    speed, one place of each name and kind.
    """
    streams = {rule for rule, declared in _routes() if declared.answers is EVENTS} | _NOT_ASKED
    wrong, asked, accepted, covered = [], 0, 0, set()
    async with foreign_world() as scene:
        asker = Asker(scene, scene.world.token, scene.agent_token)
        for place in text_places():
            kind = place.where, place.path[-1:]
            if place.rule in streams or (not whole and kind in covered):
                continue
            covered.add(kind)
            plain, declared = await asker.answer(place, "plain")
            if _is_crash(plain, declared):
                wrong.append(f"{place} plain: {plain} {declared[:200]}")
            for text in ("x%00y", "x%ed%a0%80y", "%ff") if place.where == PATH else (NUL,):
                status, declared = await asker.answer(place, text)
                asked += 1
                accepted += plain < 300
                if _is_crash(status, declared):
                    wrong.append(f"{place} {text!r}: {status} {declared[:200]}")
        for method, path, body in ANYTHING:
            for value in ODD_KINDS:
                sent: Any = dict.fromkeys(body, value) if body else value
                response = await scene.world.request(
                    method, path.format(**scene.mine), json=sent, token=scene.agent_token if "/me/" in path else None
                )
                asked += 1
                if _is_crash(response.status_code, response.text):
                    wrong.append(f"{path} {sent}: {response.text[:200]}")
        still = await scene.world.get("/api/v2/users/me")
        assert still.status_code == 200, still.text
    assert asked > 200 and accepted > 15, (asked, accepted)
    assert not wrong, "\n".join(wrong)


ANYTHING: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("POST", "/api/v2/authcheck", ("checks",)),
    (
        "PUT",
        "/api/v2/users/me/preferences",
        ("agent_chat_send_shortcut", "code_diff_display_mode", "shell_tool_display_mode"),
    ),
    ("POST", "/api/v2/csp/reports", ("csp-report",)),
    ("POST", "/api/v2/audit/testgenerate", ("additional_fields",)),
    ("POST", "/api/v2/templateversions/{version}/dynamic-parameters/evaluate", ("inputs",)),
    ("POST", "/api/v2/workspaceagents/me/tasks/00000000-0000-4000-8000-00000000dead/log-snapshot", ()),
    ("POST", "/oauth2/register", ("client_name", "redirect_uris", "jwks", "contacts")),
)
"""Fields, or whole bodies, that accept any type."""
ODD_KINDS: tuple[Any, ...] = (1, True, "x", NUL, [1], [[]], {"x": 1}, {"x": {"x": []}}, {"x": NUL}, 1.5, None)


def _is_crash(status: int, declared: str) -> bool:
    """Whether a response is an unexpected error. Some refusals are a recorded 500 with a message of their own."""
    return status >= 500 and "An internal server error occurred." in declared


HEADERS = (
    "User-Agent",
    "Accept",
    "Accept-Language",
    "Accept-Encoding",
    "Authorization",
    "Coder-Session-Token",
    "Cookie",
    "Origin",
    "Referer",
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-Ip",
    "If-None-Match",
    "If-Modified-Since",
    "If-Range",
    "Range",
    "Content-Type",
    "X-Csrf-Token",
    "Sec-Fetch-Site",
    "Coder-Build-Version",
    "Coder-Cli-Telemetry",
    "Traceparent",
    "Tracestate",
    "X-Request-Id",
    "Coder-Provisioner-Daemon-Key",
    "Coder-External-Proxy-Token",
    "X-Coder-Bypass-Ratelimit",
    "Sec-Websocket-Protocol",
    "Sec-Websocket-Key",
    "Via",
)
VALUES = (
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u202ex".encode(),
    b"x" * 60_000,
    b'"',
    b"\x7f\x85",
    b"coder_session_token=\xff\xed\xa0\x80; csrf_token=%00",
    b"Bearer \xff",
    b"bytes=\xb2-\xb3",
)
DOORS = (
    "/api/v2/users/me",
    "/@admin/dev/apps/web/",
    "/api/v2/notifications/inbox/watch",
    "/api/v2/organizations/default/provisionerdaemons/serve?provisioner=echo",
)


async def _lines(world: World, heads: list[bytes]) -> list[bytes]:
    """Return the first line of the response to each request, on separate connections."""
    parts, lines = urlsplit(world.url), [b""] * len(heads)
    limit = trio.CapacityLimiter(8)

    async def ask(number: int) -> None:
        async with limit, await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
            received = b""
            with trio.fail_after(60):
                try:
                    await stream.send_all(heads[number])
                    while b"\r\n" not in received and (piece := await stream.receive_some()):
                        received += piece
                except trio.BrokenResourceError:
                    pass
            lines[number] = received.partition(b"\r\n")[0]

    async with trio.open_nursery() as nursery:
        for number in range(len(heads)):
            nursery.start_soon(ask, number)
    return lines


async def test_odd_header_letters() -> None:
    wrong = []
    async with running_coderd(first_user=True) as world:
        host, key = urlsplit(world.url).netloc.encode(), world.token.encode()

        def head(door: str, name: str, value: bytes) -> bytes:
            credential = (
                b"" if name in {"Cookie", "Coder-Session-Token", "Authorization"} else b"Coder-Session-Token: " + key
            )
            lines = [b"GET " + door.encode() + b" HTTP/1.1", b"Host: " + host, b"Connection: close", credential]
            return b"\r\n".join([*(line for line in lines if line), name.encode() + b": " + value, b"", b""])

        asked = [(door, name, value) for door in DOORS for name in HEADERS for value in VALUES]
        for place, line in zip(asked, await _lines(world, [head(*item) for item in asked]), strict=True):
            if not line.startswith(b"HTTP/1.1 ") or line.split()[1] >= b"500":
                wrong.append(f"{place[0]} {place[1]}: {place[2][:20]!r}: {line!r}")
        plain = await _lines(world, [head("/api/v2/users/me", name, b"x") for name in HEADERS[:3]])
        assert [line.split()[1] for line in plain] == [b"200"] * 3
    assert len(asked) > 1000
    assert not wrong, "\n".join(wrong[:50])
