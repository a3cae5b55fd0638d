"""Accepting in batches: connections of one address do not delay those of others, and a full process waits."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from coder.appproxy.http import accepting
from coder.appproxy.http.accepting import Acceptor
from coder.appproxy.http.connection_shares import CONNECTION_COST, LOOP_BURST, LOOP_PART, ClientConnection
from coder.appproxy.http.connection_shares import ConnectionShares as Shares
from coder.base import log

ATTACKER, OTHER = "127.0.0.66", "127.0.0.9"
FILES = 2048
WHOLE_BURST = 0.9 * LOOP_BURST * LOOP_PART
"""Seconds of one connection after which its address has to wait."""


class Door:
    """A listener's acceptor, its clients, and the connections that it serves."""

    def __init__(self, listener: trio.SocketListener, files: int) -> None:
        self.port = listener.socket.getsockname()[1]
        self.shares = Shares(files)
        self.served: list[tuple[Any, ClientConnection]] = []
        self.acceptor = Acceptor(
            listener, self.shares, lambda stream, connection: self.served.append((stream, connection))
        )
        self._clients = contextlib.ExitStack()

    def connect(self, address: str) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), source_address=(address, 0))
        return self._clients.enter_context(client)

    @property
    def networks(self) -> list[str]:
        return [connection.network for _, connection in self.served]

    def close(self) -> None:
        self._clients.close()
        for stream, _ in self.served:
            stream.socket.close()
        for _, _, accepted, connection in self.acceptor._parked:
            self.acceptor._drop(accepted, connection)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch takes what waits, however slow the machine is."""
    monkeypatch.setattr(accepting, "BATCH_SECONDS", 60.0)


@contextlib.asynccontextmanager
async def door(files: int = FILES) -> AsyncIterator[Door]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=512)
    opened = Door(listener, files)
    try:
        yield opened
    finally:
        opened.close()
        await listener.aclose()


def spent() -> int:
    """Return the number of connections that an address may open at once."""
    return int(LOOP_BURST * LOOP_PART / CONNECTION_COST)


async def test_waiting_connections_are_accepted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "BATCH_SECONDS", 60.0)
    async with door() as opened:
        for _ in range(30):
            opened.connect(OTHER)
        opened.acceptor.accept_batch()
        assert opened.networks == [OTHER] * 30


async def test_batch_has_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "BATCH_SECONDS", 0.0)
    async with door() as opened:
        for _ in range(3):
            opened.connect(OTHER)
        opened.acceptor.accept_batch()
        assert len(opened.served) == 1


async def test_indebted_address_waits_for_its_turn(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "BATCH_SECONDS", 60.0)
    async with door() as opened:
        for _ in range(spent() + 20):
            opened.connect(ATTACKER)
        opened.connect(OTHER)
        opened.acceptor.accept_batch()
        at_once = spent()
        assert opened.networks in ([ATTACKER] * at_once + [OTHER], [ATTACKER] * (at_once - 1) + [OTHER])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.acceptor.run)
            began = trio.current_time()
            while len(opened.served) < spent() + 21:
                await trio.sleep(CONNECTION_COST)
            assert trio.current_time() - began >= 15 * CONNECTION_COST / LOOP_PART
            nursery.cancel_scope.cancel()


async def test_parked_connection_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "BATCH_SECONDS", 60.0)
    async with door(files=16) as opened:
        opened.acceptor._cost = WHOLE_BURST  # the second connection of an address is parked
        clients = [opened.connect(f"127.0.1.{n // 2}") for n in range(opened.shares.max_strangers)]
        opened.acceptor.accept_batch()
        parked = len(opened.acceptor._parked)
        assert parked == len(clients) - len(opened.served) > 0
        opened.connect(OTHER)
        opened.acceptor.accept_batch()
        assert opened.networks[-1] == OTHER
        assert len(opened.shares) == opened.shares.max_strangers


async def test_evicted_connections_leave_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a crowd that comes and goes would fill the memory with connections that are closed."""
    async with door() as opened:
        acceptor, shares = opened.acceptor, opened.shares
        monkeypatch.setattr(acceptor, "_cost", WHOLE_BURST / 10)
        for _ in range(6):
            for _ in range(10):
                opened.connect(ATTACKER)
            acceptor.accept_batch()
            for _, _, accepted, connection in list(acceptor._parked)[1:]:
                acceptor._drop(accepted, connection)
        assert len(acceptor._parked) <= 20
        assert sum(not parked[3].has_ended for parked in acceptor._parked) == len(shares) - len(opened.served)


async def test_long_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refused connections leave no debt, so the address is served again when its turn comes."""
    monkeypatch.setattr(accepting, "MAX_WAIT", 0.0)
    async with door() as opened:
        opened.acceptor._cost = WHOLE_BURST
        clients = [opened.connect(ATTACKER) for _ in range(5)]
        opened.acceptor.accept_batch()
        assert not opened.acceptor._parked
        assert len(opened.served) == len(opened.shares) < 5
        clients[-1].settimeout(60)
        assert await trio.to_thread.run_sync(clients[-1].recv, 1) == b""
        owed = opened.shares._paid_until[opened.networks[0]]
        assert owed <= trio.current_time() + len(opened.served) * WHOLE_BURST / LOOP_PART


async def test_refused_connection_is_closed() -> None:
    async with door(files=16) as opened:
        clients = [opened.connect(ATTACKER) for _ in range(opened.shares.max_per_address + 1)]
        opened.acceptor.accept_batch()
        assert len(opened.served) + len(opened.acceptor._parked) == opened.shares.max_per_address
        clients[-1].settimeout(60)
        assert clients[-1].recv(1) == b""


async def test_end_closes_parked_connections() -> None:
    async with door() as opened:
        opened.acceptor._cost = WHOLE_BURST
        clients = [opened.connect(ATTACKER) for _ in range(3)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.acceptor.run)
            while len(opened.acceptor._parked) < 2:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        assert len(opened.shares) == len(opened.served) == 1
        clients[-1].settimeout(60)
        assert clients[-1].recv(1) == b""


class _ScriptedAcceptor(Acceptor):
    errors: list[int]

    def _accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if self.errors:
            raise OSError(self.errors.pop(0), "no room")
        return super()._accept()


async def test_full_process_logs_once(autojump_clock: trio.testing.MockClock) -> None:
    lines: list[str] = []
    with log.also(lambda _level, _at, _name, message, _fields: lines.append(message)):
        async with door() as opened:
            opened.acceptor.__class__ = _ScriptedAcceptor
            acceptor: Any = opened.acceptor
            minutes = 2 * int(accepting.LOG_EVERY / accepting.RETRY_ACCEPT)
            acceptor.errors = [errno.EMFILE] * 50 + [errno.ENFILE] * (minutes - 60)
            opened.connect(OTHER)
            await _accept_patiently(acceptor)
            assert opened.networks == [OTHER]
    assert lines.count("new connections wait until others have closed") == 2


async def _accept_patiently(acceptor: Any) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor.run)
        while acceptor.errors:
            await trio.sleep(accepting.RETRY_ACCEPT)
        await trio.sleep(accepting.RETRY_ACCEPT)
        nursery.cancel_scope.cancel()


async def test_errors_of_one_connection_are_skipped() -> None:
    async with door() as opened:
        opened.acceptor.__class__ = _ScriptedAcceptor
        acceptor: Any = opened.acceptor
        acceptor.errors = [errno.ECONNABORTED, errno.EPROTO, errno.EPERM]
        opened.connect(OTHER)
        acceptor.accept_batch()
        assert opened.networks == [OTHER]
        acceptor.errors = [errno.EBADF]
        with pytest.raises(OSError, match="no room"):
            acceptor.accept_batch()
