"""Hostile or broken clients: too slow, too large, foreign ids, forged logs, borrowed tokens."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from coder.appproxy.http import hypercorn_fixes
from coder.base import log
from coder.coderd.http.server import body_reading
from coder.coderd.http.server.declarations import LIMIT
from tests.kit.api.api_description import check
from tests.kit.api.api_fuzzer import NEWLINE
from tests.kit.server.server_in_process import World, running_coderd


async def _connect(world: World) -> trio.SocketStream:
    parts = urlsplit(world.url)
    return await trio.open_tcp_stream(parts.hostname or "", parts.port or 0)


async def _read_to_end(stream: trio.SocketStream) -> bytes:
    """Read until the server closes."""
    received = b""
    async with stream:
        with trio.fail_after(60):
            try:
                while piece := await stream.receive_some():
                    received += piece
            except trio.BrokenResourceError:
                pass
    return received


async def test_trickling_body_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_coderd(first_user=True) as world:
        monkeypatch.setattr(body_reading, "BODY_PATIENCE", 0.05)
        stream = await _connect(world)
        head = f"POST /api/v2/authcheck HTTP/1.1\r\nHost: x\r\nCoder-Session-Token: {world.token}\r\n"
        await stream.send_all(head.encode() + b'Content-Length: 1000\r\n\r\n{"checks"')
        answer = await _read_to_end(stream)  # to the end: the connection is closed, too
        assert b" 408 " in answer.splitlines()[0]
        body = json.loads(answer.partition(b"\r\n\r\n")[2])
        check("Response", body)
        assert "too slowly" in body["message"]


async def test_trickling_head_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "KEEP_ALIVE_IDLE", 0.3)
    async with running_coderd() as world:
        stream = await _connect(world)
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        with contextlib.suppress(trio.BrokenResourceError):  # its time may end in the middle
            for _ in range(3):  # bytes of a head extend no deadline
                await stream.send_all(b"X-A: b\r\n")
        assert b"200 OK" not in await _read_to_end(stream)


async def test_second_head_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_coderd() as world:
        stream = await _connect(world)
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in await stream.receive_some()
        monkeypatch.setattr(hypercorn_fixes, "HEAD_PATIENCE", 0.05)  # now that one request was in time
        await stream.send_all(b"GET /healthz")
        assert await _read_to_end(stream) == b""


async def test_unread_body_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the fast path, on a page, and for a refusal."""
    monkeypatch.setattr(body_reading, "BODY_PATIENCE", 3600.0)
    async with running_coderd(first_user=True) as world:
        for method, path in (("GET", "/api/v2/users/me"), ("GET", "/healthz"), ("GET", "/"), ("POST", "/api/v2/files")):
            for framing in (b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"):
                stream = await _connect(world)
                await stream.send_all(f"{method} {path} HTTP/1.1\r\nHost: x\r\n".encode() + framing)
                assert (await _read_to_end(stream)).startswith(b"HTTP/1.1 "), (path, framing)


async def test_oversized_body_is_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_reading, "BODY_PATIENCE", 3600.0)
    monkeypatch.setattr(hypercorn_fixes, "HEAD_PATIENCE", 3600.0)
    async with running_coderd(first_user=True) as world:
        big = b'{"checks":"' + b"x" * LIMIT + b'"}'
        answer = await world.request("POST", "/api/v2/authcheck", content=big)
        assert answer.status_code == 413
        check("Response", answer.json())
        stream = await _connect(world)
        await stream.send_all(b"GET /api/v2/buildinfo HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * (1 << 18))
        assert b" 431 " in (await _read_to_end(stream)).splitlines()[0]


_NESTED = (
    "templates/{template_name}",
    "templates/{template_name}/versions/{version_name}",
    "groups/{group_name}",
    "groups/{group_name}/members",
    "members/{member}",
    "provisionerjobs/{job}",
)


async def test_objects_hidden_below_other_organization() -> None:
    """Not even by an owner, who may see both: the path names a missing object."""
    async with running_coderd(first_user=True) as world:
        other = (await world.post("/api/v2/organizations", {"name": "other"})).json()["id"]
        home = f"/api/v2/organizations/{world.organization_id}"
        await world.post(f"{home}/groups", {"name": "crew"})
        member, _ = await world.member("mary")
        names = {"group_name": "crew", "member": member, "template_name": "none", "version_name": "none"}
        names["job"] = "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"
        for part in _NESTED:
            path = part.format(**names)
            answer = await world.get(f"/api/v2/organizations/{other}/{path}")
            assert answer.status_code == 404, (path, answer.text)
            check("Response", answer.json())
        assert (await world.get(f"{home}/groups/crew")).status_code == 200


async def test_token_is_bound_to_session() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member("mary")
        identity, _, secret = token.partition("-")
        _, other = await world.member("nora")
        strange = [
            token[:-1],
            token[1:],
            token + "x",
            token.upper(),
            f"{identity}-",
            f"-{secret}",
            f"{identity}-{other.partition('-')[2]}",
            f"{other.partition('-')[0]}-{secret}",
            f"{identity}--{secret}",
            f"{identity}-{secret}-{secret}",
            identity,
            secret,
            "me",
            "null",
            "é" * 33,
            "0" * 4000,
        ]
        for token_text in strange:
            answer = await world.request(
                "GET", "/api/v2/users/me", token="", headers={"Coder-Session-Token": _latin(token_text)}
            )
            assert answer.status_code == 401, token_text
            check("Response", answer.json())
        assert (await world.post("/api/v2/users/logout", token=token)).status_code == 200
        assert (await world.get("/api/v2/users/me", token=token)).status_code == 401  # replayed
        world.client.cookies.clear()
        answer = await world.get("/api/v2/users/me", token="", headers={"Cookie": f"coder_session_token={token}"})
        assert answer.status_code == 401


def _latin(text: str) -> Any:
    return text.encode("latin-1")


def test_foreign_text_cannot_forge_logs() -> None:
    out = io.StringIO()
    write = log.human_sink(out)
    now = datetime(2026, 1, 2, tzinfo=UTC)
    write(
        "info", now, "http", NEWLINE, {"path": NEWLINE, "name": "\u202egnp.exe \ud800 \u2028x", "plain": "naïve 世界"}
    )
    text = out.getvalue()
    assert text.count("\n") == 1
    assert text[:-1].isprintable()
    assert "naïve 世界" in text
    text.encode()  # half a surrogate pair would keep the line from being written


async def test_unknown_methods() -> None:
    async with running_coderd(first_user=True) as world:
        for method, path in (
            ("PATCH", "/api/v2/buildinfo"),
            ("DELETE", "/api/v2/users/me/roles"),
            ("HEAD", "/api/v2/users/me"),
            ("OPTIONS", "/api/v2/users/me"),
        ):
            answer = await world.request(method, path)
            assert answer.status_code == 405, (method, path)
            assert "GET" in answer.headers["allow"]
            assert answer.content == b""
        assert (await world.request("HEAD", "/healthz")).status_code == 200


async def test_remaining_rate_is_reported() -> None:
    async with running_coderd(first_user=True, dangerous_disable_rate_limits=False, api_rate_limit=2) as world:
        answers = [await world.get("/api/v2/users/me/roles") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
        refused = answers[-1]
        check("Response", refused.json())
        assert refused.headers["x-ratelimit-limit"] == "2"
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert int(refused.headers["x-ratelimit-reset"]) > 0
