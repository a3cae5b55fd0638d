"""Replies of other servers: limited in size, and parsed to a limited depth."""

from __future__ import annotations

import ast

import pytest
import trio

from coder.coderd.services.foundation.outgoing_requests import DOCUMENT, SMALL, OutgoingReply, fetch
from coder.net.errors import HttpError, NetError, error_from_body
from tests.arch.test_house import ROOT, SOURCES
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
@pytest.mark.parametrize("limit", [SMALL, DOCUMENT])
async def test_reply_has_limit(limit: int, status: str) -> None:
    def ask(size: int) -> bytes:
        server.answer = lambda _method, _path: reply("x" * size, status=status)
        return trio.from_thread.run(fetch_it).body

    async def fetch_it() -> OutgoingReply:
        return await fetch("GET", server.url, limit=limit)

    with odd_server() as server:
        assert len(await trio.to_thread.run_sync(ask, limit)) == limit
        with pytest.raises(NetError, match=f"larger than {limit} bytes"):
            await trio.to_thread.run_sync(ask, limit + 1)


@pytest.mark.parametrize("said", [b"[" * 60_000, b"&access_token=1" * 60_000, b"a=1&" * 60_000])
def test_document_is_object(said: bytes) -> None:
    with pytest.raises(ValueError, match=r"not JSON|fields"):
        OutgoingReply(200, said).document()


def test_deeply_nested_error() -> None:
    """Nested deeper than a JSON parser goes."""
    assert isinstance(error_from_body(500, b"[" * 100_000), HttpError)


def test_fetch_requires_limit() -> None:
    """The client's default limit is for trusted servers: a quarter of a gigabyte."""
    asked = [
        (path, node)
        for path in SOURCES
        if path.relative_to(ROOT).parts[1] in {"agent", "appproxy", "coderd", "provisionerd"}
        and "http1 import" in path.read_text()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "request"
    ]
    assert len(asked) > 5
    without = [f"{path.relative_to(ROOT)}:{node.lineno}" for path, node in asked if not _is_limited(node)]
    # The agent's own server, whose programs it downloads.
    assert {where.partition(":")[0].rpartition("/")[0] for where in without} == {"coder/agent/upgrade"}, without


def _is_limited(call: ast.Call) -> bool:
    return any(word.arg == "limit" for word in call.keywords)
