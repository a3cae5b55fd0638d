"""What a connection keeps in memory: nothing of HTTP while it is a link, and nothing for the collector at its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from coder.appproxy.http.listener import AcceptedConnection, LinkRequest, UpgradeAwareH11
from coder.appproxy.upgrades.raw_links import Upgrade, UpgradeRequest
from tests.unit.appproxy.http.test_listener import door, read_response

_OF_HTTP = (AcceptedConnection, UpgradeAwareH11, LinkRequest)


@contextmanager
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _living(*kinds: type) -> list[object]:
    return [value for value in gc.get_objects() if type(value) in kinds]


def _has_fields(value: object) -> bool:
    return isinstance(value, UpgradeRequest) and bool(value.headers or value.query)


async def _wait_for_none(*kinds: type) -> None:
    with trio.fail_after(60):
        while _living(*kinds):
            await trio.sleep(0)


async def test_open_link_keeps_nothing_of_its_request() -> None:
    with _without_collector():
        async with door() as front, await front.connect() as stream:
            fields = b"Host: x\r\nUpgrade: test\r\nX-Long: " + b"x" * 4000
            await stream.send_all(b"GET /link/a?q=1 HTTP/1.1\r\n" + fields + b"\r\n\r\nearly")
            received = b""
            while not received.endswith(b"EARLY"):
                received += await stream.receive_some(1000)
            await _wait_for_none(*_OF_HTTP)
            assert not any(_has_fields(value) for value in _living(UpgradeRequest))
            await stream.send_eof()
            assert await stream.receive_some(1000) == b""
            await _wait_for_none(Upgrade, UpgradeRequest)


async def test_ended_connection_leaves_no_cycle() -> None:
    with _without_collector():
        async with door() as front:
            for _ in range(3):
                async with await front.connect() as stream:
                    await stream.send_all(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    await read_response(stream)
                    assert await stream.receive_some(1000) == b""
            await _wait_for_none(*_OF_HTTP)
