"""Carried streams: bytes arrive once and in order, regardless of the requests that carry them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from coder.api.base.refusals import Conflict, NotFound, Unavailable
from coder.appproxy.upgrades.raw_links import EndpointTable
from coder.coderd.http.server import body_bounds
from coder.coderd.services.foundation.this_process import ThisProcess
from coder.coderd.services.network import carried_streams
from coder.coderd.services.network.carried_streams import CarriedServerStream, CarriedStreams, Pool
from coder.domain.access.rate_budgets import PUBLIC_ROUTE
from coder.domain.access.route_scopes import PUBLIC
from coder.net import carried_stream
from coder.net.carried_stream import (
    CARRIER,
    CARRY,
    MARK,
    OFFSET,
    RECEIVED,
    WAIT,
    WINDOW,
    RetransmitBuffer,
    connect_carried,
)
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from tests.kit.network.middleboxes import IdleCutter, serve_box
from tests.kit.server.server_in_process import World, running_coderd


def test_retransmit_buffer_keeps_unacknowledged() -> None:
    box = RetransmitBuffer()
    box.write(b"hello world")
    assert (box.read(0, 5), box.read(6, 99), box.read(11, 1)) == (b"hello", b"world", b"")
    box.acknowledge(6)
    box.acknowledge(3)
    assert (box.start, box.end, len(box)) == (6, 11, 5)
    for offset in (5, 12):
        with pytest.raises(ValueError, match="outside"):
            box.read(offset, 1)
    with pytest.raises(ValueError, match="never written"):
        box.acknowledge(12)


async def test_repeated_and_missing_bytes(autojump_clock: trio.testing.MockClock) -> None:
    stream = CarriedServerStream()
    await stream.feed(0, b"abc", 0, ended=False)
    await stream.feed(0, b"abcdef", 0, ended=False)  # a retry with more bytes, after a lost answer
    await stream.feed(3, b"def", 0, ended=False)
    assert await stream.receive_some() == b"abcdef"
    with pytest.raises(Conflict):
        await stream.feed(7, b"h", 0, ended=False)
    await stream.feed(6, b"", 0, ended=True)
    assert await stream.receive_some() == b""
    with pytest.raises(Conflict):
        await stream.feed(6, b"", 1, ended=False)


async def test_memory_bounded_in_both_directions(autojump_clock: trio.testing.MockClock) -> None:
    stream = CarriedServerStream()
    with trio.move_on_after(5) as sending:
        while True:
            await stream.send_all(bytes(100_000))
    assert sending.cancelled_caught
    assert len(stream._out) <= WINDOW + 100_000
    offset = 0
    with pytest.raises(Unavailable):
        while True:
            await stream.feed(offset, bytes(100_000), 0, ended=False)
            offset += 100_000
    assert len(stream._in) <= WINDOW + 100_000


async def test_only_latest_retry_waits(autojump_clock: trio.testing.MockClock) -> None:
    """Each request holds a body, so the client must not control their number."""
    stream = CarriedServerStream()
    await stream.feed(0, bytes(WINDOW + 1), 0, ended=False)
    refused_at: list[float] = []

    async def repeat() -> None:
        with pytest.raises(Unavailable):
            await stream.feed(WINDOW + 1, b"x", 0, ended=False)
        refused_at.append(trio.current_time())

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(repeat)
    assert [at - began >= carried_streams.ROOM_TIMEOUT for at in refused_at] == [False, False, True]


async def test_silent_client_expires(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:

        class Ctx:
            pass

        ctx: Any = Ctx()
        ctx.nursery, ctx.process = nursery, ThisProcess()
        streams = CarriedStreams(ctx)
        ident, stream = streams.open()
        await trio.sleep(carried_streams.LINGER - 5)
        assert await streams.find(ident).poll(0, 1.0) == MARK
        await trio.sleep(carried_streams.LINGER - 5)
        assert streams.find(ident) is stream
        await trio.sleep(15)
        with pytest.raises(NotFound):
            streams.find(ident)
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()


async def test_pools_and_addresses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried_streams, "MAX_STREAMS", 4)
    monkeypatch.setattr(carried_streams, "MAX_STREAMS_PER_ADDRESS", 3)
    monkeypatch.setattr(carried_streams, "BUDGET", 1000)
    anonymous, known = Pool(), Pool()
    streams = [anonymous.open(f"2001:db8::{number}") for number in range(3)]
    with pytest.raises(Unavailable, match="from this address"):
        anonymous.open("2001:db8::99")
    other = anonymous.open("192.0.2.1")
    with pytest.raises(Unavailable, match="Too many"):
        anonymous.open("192.0.2.2")
    known.open("2001:db8::1")
    await other.feed(0, bytes(350), 0, ended=False)
    for stream, size in zip(streams, (200, 240, 220), strict=True):
        await stream.feed(0, bytes(size), 0, ended=False)
    with pytest.raises(trio.BrokenResourceError):
        await streams[1].receive_some()
    assert [len(await stream.receive_some()) for stream in (streams[0], streams[2], other)] == [200, 220, 350]
    assert anonymous._held == 0
    anonymous.forget(streams[1])
    anonymous.open("2001:db8::99")


async def test_incoming_bytes_count_for_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried_streams, "BUDGET", 1000)
    pool = Pool()
    large, other = pool.open("192.0.2.1"), pool.open("192.0.2.2")
    with large.receiving() as many, other.receiving() as few:
        many.take(700)
        few.take(300)
        assert (large.held, other.held, pool._held) == (700, 300, 1000)
        few.take(100)
        assert (large.held, other.held, pool._held) == (0, 400, 400)
        with pytest.raises(NotFound):
            many.take(1)
    assert pool._held == 0


def echo_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a link that echoes its input."""
    add = EndpointTable.add

    async def echo(_ctx: Any, upgrade: Any) -> None:
        stream = await upgrade.accept_raw([("upgrade", "echo")])
        while data := await stream.receive_some(65536):
            await stream.send_all(data)

    def add_with_echo(self: EndpointTable, pattern: str, handler: Any, **options: Any) -> None:
        if not self.routes:
            add(self, "/echo", echo, scope=PUBLIC, budgets=(PUBLIC_ROUTE,))
        add(self, pattern, handler, **options)

    monkeypatch.setattr(EndpointTable, "add", add_with_echo)


async def test_streams_exempt_from_address_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """An office behind one address has many streams, and sign-ins at the same time."""
    monkeypatch.setattr(body_bounds, "ADDRESS_BYTES", 1000)
    monkeypatch.setattr(carried_stream, "PAUSES", (0.0,))
    echo_world(monkeypatch)
    async with running_coderd() as world:
        stream, _ = await connect_carried(DialPolicy(world.url), "/echo", "echo")
        async with stream:
            await stream.send_all(bytes(50_000))
            received = 0
            with trio.fail_after(60):
                while received < 50_000:
                    received += len(await stream.receive_some())
        assert (await world.post("/api/v2/users/login", {"email": "x" * 2000}, token="")).status_code == 429


async def test_bytes_survive_cut_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three megabytes in both directions while connections die; the client shortens its waits."""
    echo_world(monkeypatch)
    async with running_coderd() as world, trio.open_nursery() as nursery:
        host, port = world.url.removeprefix("http://").rsplit(":", 1)
        box = IdleCutter((host, int(port)), 0.5)
        policy = DialPolicy(f"http://127.0.0.1:{await nursery.start(serve_box, box)}")
        monkeypatch.setattr(carried_stream, "LEAST_WAIT", 0.1)
        monkeypatch.setattr(carried_streams, "LEAST_WAIT", 0.1)
        stream, _ = await connect_carried(policy, "/echo", "echo")
        data = b"".join(number.to_bytes(4, "big") for number in range(750_000))

        async def send() -> None:
            await stream.send_all(data)
            await trio.sleep(1.2)
            await stream.send_all(b"after the silence")
            await stream.send_eof()

        nursery.start_soon(send)
        received = b""
        with trio.fail_after(60):
            while piece := await stream.receive_some():
                received += piece
        assert received == data + b"after the silence"
        assert box.cuts >= 1
        await stream.aclose()
        nursery.cancel_scope.cancel()


async def raw(world: World, method: str, path: str, **headers: str) -> httpx.Response:
    return await world.request(method, path, token="", headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_carried_upgrade_and_stream_routes() -> None:
    """`CarriedUpgrade` accepts ordinary requests; the routes of its streams check theirs."""
    async with running_coderd(first_user=True) as world:
        opened = await raw(world, "POST", "/derp", **{CARRY: "DERP"})
        assert opened.status_code == 200
        ident = opened.headers[CARRIER]
        assert opened.headers["derp-version"] == "2"
        path = f"/derp/streams/{ident}"
        first = await raw(world, "GET", path, **{OFFSET: "0", "Coder-Carrier-Mode": "poll", WAIT: "1"})
        assert first.content[:1] == MARK
        assert first.content[6:14] == "DERP🔑".encode()
        assert (await raw(world, "GET", path, **{OFFSET: "x"})).status_code == 400
        assert (await raw(world, "GET", path, **{OFFSET: "99999"})).status_code == 409
        assert (await raw(world, "POST", path, **{OFFSET: "0", RECEIVED: "99999"})).status_code == 409
        assert (await raw(world, "GET", "/derp/streams/" + "0" * 32)).status_code == 404
        assert (await raw(world, "DELETE", path)).status_code == 204
        # The link's own checks come first, with or without an upgrade.
        me = "/api/v2/workspaceagents/me/rpc?version=2.0"
        assert (await raw(world, "POST", me, **{CARRY: "websocket"})).status_code == 401
        assert (await raw(world, "GET", "/derp")).status_code == 426
        assert (await raw(world, "POST", "/derp")).status_code == 405
        with pytest.raises(HttpError) as refused:
            await connect_carried(DialPolicy(world.url), "/api/v2/tailnet?version=2.0", "websocket")
        assert refused.value.status == 401, refused.value
