"""Answers that open a link: the headers that every answer has, and those of the request's count."""

from __future__ import annotations

import pytest
import trio.testing

from coder.appproxy.upgrades.raw_links import Upgrade, UpgradeRequest

HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize("kind", ["raw", "websocket"])
async def test_opening_answer_has_all_headers(kind: str) -> None:
    near, far = trio.testing.memory_stream_pair()
    request = UpgradeRequest("GET", "/link", {}, HANDSHAKE, "192.0.2.1")
    upgrade = Upgrade(request, {}, near, b"", [("x-coder-build-version", "v2.34.0")])
    upgrade.add_headers([("x-ratelimit-remaining", "511")])
    if kind == "raw":
        await upgrade.accept_raw([("upgrade", "DERP")])
    else:
        await upgrade.accept_websocket()
    lines = bytes(await far.receive_some()).decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 101 Switching Protocols"
    assert {"x-coder-build-version: v2.34.0", "x-ratelimit-remaining: 511", "connection: Upgrade"} <= set(lines)
    assert not upgrade.request.headers, "kept no longer than needed"
