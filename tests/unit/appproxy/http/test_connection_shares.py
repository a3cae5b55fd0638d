"""Connections of the process: an address that opens as many as it can keeps neither strangers nor users out."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from coder.appproxy.http import connection_shares, listener
from coder.appproxy.http.client_address import TrustedProxies
from coder.appproxy.http.connection_shares import ClientConnection, ConnectionShares, authenticated_as
from coder.appproxy.http.listener import HttpServer
from coder.base import log
from coder.base.exception_groups import is_disconnect
from coder.base.open_files import open_files_limit

FILES = 128
"""Descriptors of the process in these tests: room for 96 connections, 72 of strangers, 18 of one address."""
ATTACKER, OTHER = "127.0.0.66", "127.0.0.9"
GET = b"GET /?%s HTTP/1.1\r\nHost: x\r\n\r\n"


class _Trusting:
    proxy_trusted_origins = (f"{ATTACKER}/32",)
    proxy_trusted_headers = ()


async def _application(scope: Any, _receive: Any, send: Any) -> None:
    """Answer; the query is the account of a user who has signed in."""
    if account := scope["query_string"].decode():
        authenticated_as(account)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok", "more_body": False})


class Door:
    """A server, and the connections that clients have opened to it."""

    def __init__(self, server: HttpServer, port: int) -> None:
        self.shares = server.connections
        self._port = port
        self.opened: list[trio.SocketStream] = []

    async def connect(self, address: str) -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", self._port, local_address=address)
        self.opened.append(stream)
        return stream


@contextlib.asynccontextmanager
async def serving(proxies: TrustedProxies | None = None) -> AsyncIterator[Door]:
    async def no_links(*_: Any) -> None:
        raise AssertionError

    server = HttpServer(_application, lambda _: False, no_links, proxies=proxies)
    (tcp,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [tcp], trio.Event())
        door = Door(server, tcp.socket.getsockname()[1])
        yield door
        for stream in door.opened:
            await trio.aclose_forcefully(stream)
        nursery.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "ConnectionShares", lambda **named: ConnectionShares(FILES, **named))


async def is_served(stream: trio.SocketStream, account: bytes = b"") -> bool:
    with trio.fail_after(60):
        try:
            await stream.send_all(GET % account)
            return (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        except trio.BrokenResourceError:
            return False


async def test_address_has_limited_connections() -> None:
    async with serving() as door:
        idle = [await door.connect(ATTACKER) for _ in range(60)]
        assert await is_served(await door.connect(OTHER))
        assert [await is_served(stream) for stream in idle].count(True) == door.shares.max_per_address
        for stream in idle:
            await stream.aclose()
        while len(door.shares) > 1:  # the one of the other address stays open
            await trio.sleep(0.01)
        assert await is_served(await door.connect(ATTACKER))


async def test_full_process_admits_new_addresses() -> None:
    async with serving() as door:
        idle = [await door.connect(f"127.0.1.{n % 4 + 1}") for n in range(4 * 18)]
        while len(door.shares) < door.shares.max_strangers:
            await trio.sleep(0.01)
        for _ in range(5):
            assert await is_served(await door.connect(OTHER))
        assert [await is_served(stream) for stream in idle].count(False) == 5
        assert len(door.shares) == door.shares.max_strangers


async def test_known_users_keep_their_connections() -> None:
    async with serving() as door:
        known = [await door.connect(OTHER) for _ in range(4)]
        for number, stream in enumerate(known):
            assert await is_served(stream, b"user-%d" % number)
        for n in range(120):
            assert await is_served(await door.connect(f"127.0.1.{n % 6 + 1}")) in (True, False)
        for stream in known:
            assert await is_served(stream)
        assert len(door.shares) == door.shares.max_strangers + len(known)


async def test_user_has_limited_reserve() -> None:
    """The surplus stays among strangers, and is served."""
    async with serving() as door:
        streams = [await door.connect(OTHER) for _ in range(15)]
        for stream in streams:
            assert await is_served(stream, b"user")
        assert door.shares._known.count("account user") == door.shares.max_per_account == 6


async def test_trusted_proxy_has_no_own_limit() -> None:
    async with serving(TrustedProxies(_Trusting())) as door:
        streams = [await door.connect(ATTACKER) for _ in range(60)]
        for stream in streams:
            assert await is_served(stream)
        assert len(door.shares) == 60


@pytest.mark.parametrize("files", [4, 64, 256, 1024, 1 << 20])
def test_parts_fit_into_limit(files: int) -> None:
    shares = ConnectionShares(files)
    assert 0 < shares.max_per_address <= shares.max_strangers
    assert 0 < shares.max_per_account <= shares.max_known
    assert shares.max_strangers + shares.max_known <= files
    assert open_files_limit() > 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(), True),
        (ExceptionGroup("tasks", [trio.BrokenResourceError(), ExceptionGroup("more", [BrokenPipeError()])]), True),
        (ExceptionGroup("tasks", [trio.BrokenResourceError(), ValueError()]), False),
        (OSError(24, "too many open files"), False),
    ],
)
def test_disconnects_are_told_from_faults(error: Exception, expected: bool) -> None:
    assert is_disconnect(error) is expected


def test_refusals_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, dict[str, Any]]] = []
    shares = ConnectionShares(FILES)
    with log.also(lambda _level, _at, _name, message, fields: lines.append((message, fields))):
        admitted = [shares.admit(ATTACKER, lambda: None) for _ in range(1000)]
    assert len([connection for connection in admitted if connection]) == shares.max_per_address
    assert lines == [("connections are refused: one address has too many", {"address": ATTACKER})]


async def test_strangers_share_loop_time(autojump_clock: trio.testing.MockClock) -> None:
    """Connections of one address are served one after the other once its part is spent; others are not held up."""
    shares, served = ConnectionShares(1 << 20), dict.fromkeys((ATTACKER, OTHER, "127.0.0.1"), 0)

    async def visit(address: str) -> None:
        connection = shares.admit(address, lambda: None)
        assert connection is not None
        await connection.pay(connection_shares.CONNECTION_COST)
        served[address] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(2000):
            nursery.start_soon(visit, ATTACKER)
        await trio.sleep(2)
        for address in (OTHER, "127.0.0.1"):
            for _ in range(100):
                nursery.start_soon(visit, address)
        await trio.sleep(1)
        spent = served[ATTACKER] * connection_shares.CONNECTION_COST
        part, burst = connection_shares.LOOP_PART, connection_shares.LOOP_BURST
        assert (3 + burst) * part * 0.9 <= spent <= (3 + burst) * part * 1.1
        assert (served[OTHER], served["127.0.0.1"]) == (100, 100)
        nursery.cancel_scope.cancel()


async def test_known_clients_get_their_price_back() -> None:
    shares = ConnectionShares(1 << 20)
    await trio.lowlevel.checkpoint()
    for number in range(5000):
        connection = shares.admit(OTHER, lambda: None)
        assert connection is not None
        connection.spent = 0.0025
        assert shares.charge(OTHER, connection.spent) <= 0
        shares.promote(connection, f"user-{number}")
        shares.release(connection)
    assert len(shares) == 0


async def test_remembered_addresses_are_bounded() -> None:
    shares = ConnectionShares(1 << 20)
    await trio.lowlevel.checkpoint()
    for number in range(3 * connection_shares._MAX_ALLOWANCES):
        shares.charge(f"192.0.{number >> 8}.{number & 255}", 0.0)
    assert len(shares._paid_until) <= connection_shares._MAX_ALLOWANCES


async def test_each_piece_of_work_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[float] = []

    def charge(_: ClientConnection, cost: float) -> float:
        paid.append(cost)
        return 0.0

    monkeypatch.setattr(ClientConnection, "charge", charge)
    async with serving() as door:
        stream = await door.connect(ATTACKER)
        await stream.send_all((GET % b"") * 5)
        answers = b""
        while answers.count(b"HTTP/1.1 200") < 5:
            answers += await stream.receive_some()
        await stream.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 500)
        with trio.fail_after(60):
            while await stream.receive_some():
                pass
    assert paid[0] == connection_shares.CONNECTION_COST
    assert paid.count(connection_shares.REQUEST_COST) == 6
    assert connection_shares.READ_COST in paid
    chunks = sum(cost for cost in paid[1:] if cost not in _PRICES) / connection_shares.CHUNK_COST
    assert 1 <= chunks <= 500


_PRICES = {connection_shares.REQUEST_COST, connection_shares.READ_COST}
