"""LISTEN that is cancelled, refused or not answered."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import datetime
from typing import Any

import asyncpg
import pytest
import trio
from sqlalchemy import text

from coder.base.log import Level
from coder.base.log import also as log_to
from coder.base.retry import Backoff
from coder.coderd.store.engine import listening
from coder.coderd.store.engine.database import Tx, open_database
from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.postgres_server import fresh_database


async def _greet(tx: Tx) -> None:
    await tx.execute(text("NOTIFY news, 'hello'"))


async def test_cancelled_listen_keeps_channel_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A WebSocket that closes early must not silence the channel for the next one."""
    add, started = listening._add_listener, trio.Event()
    token = trio.lowlevel.current_trio_token()

    async def hang(*_: Any) -> None:
        token.run_sync_soon(started.set)
        await asyncio.Event().wait()

    async with fresh_database() as url, open_database(url) as database:

        async def subscribe() -> None:
            async with database.listen("news"):
                pass

        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(listening, "_add_listener", hang)
            nursery.start_soon(subscribe)
            await started.wait()
            nursery.cancel_scope.cancel()
        monkeypatch.setattr(listening, "_add_listener", add)
        async with database.listen("news") as notices:
            await database.run(_greet)
            with trio.fail_after(60):
                assert await notices.receive() == ("news", "hello")


async def test_refused_listen_is_retried_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database in recovery accepts connections and refuses LISTEN."""
    pauses: list[float] = []
    enough = trio.Event()

    class Pauses(Backoff):
        def next_delay(self, attempt: float = 0.0) -> float:
            pauses.append(self._delay)
            if len(pauses) == 4:
                enough.set()
            super().next_delay(attempt)
            return 0.0

    async def refuse(*_: Any) -> None:
        raise asyncpg.ReadOnlySQLTransactionError("cannot execute LISTEN during recovery")

    monkeypatch.setattr(listening, "Backoff", Pauses)
    async with fresh_database() as url, open_database(url) as database, database.listen("first"):
        monkeypatch.setattr(listening, "_add_listener", refuse)
        async with database.listen("second"):
            with trio.fail_after(60):
                await enough.wait()
            assert not database.is_listening
    assert pauses[:4] == [0.05, 0.1, 0.2, 0.4]


async def test_unanswered_listen_ends_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ping waits for the same lock, so LISTEN needs a deadline of its own."""
    add, patience = listening._add_listener, listening._PING_TIMEOUT
    hung: list[str] = []

    async def hang_once(connection: Any, channel: str, notice: Any) -> None:
        if channel == "news" and not hung:
            hung.append(channel)
            monkeypatch.setattr(listening, "_PING_TIMEOUT", patience)  # the next connection is not in a hurry
            await asyncio.Event().wait()
        await add(connection, channel, notice)

    monkeypatch.setattr(listening, "_add_listener", hang_once)
    monkeypatch.setattr(listening, "_PING_TIMEOUT", 0.5)
    with trio.fail_after(60):
        async with fresh_database() as url, open_database(url) as database, database.listen("news") as notices:
            assert await notices.receive() == ("news", listening.RESYNC)
            await database.run(_greet)
            assert await notices.receive() == ("news", "hello")
    assert hung == ["news"]


async def _other_backend(tx: Tx) -> int:
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return int((await tx.execute(text(query))).scalar_one())


async def test_frozen_database_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process accepts packets and answers nothing, so no operation fails."""
    monkeypatch.setattr(listening, "PING_EVERY", 0.01)
    monkeypatch.setattr(listening, "SILENT_AFTER", 0.1)
    lines: list[tuple[str, Any]] = []

    def note(_level: Level, _at: datetime, _name: str, message: str, fields: dict[str, Any]) -> None:
        lines.append((message, fields.get("cause")))

    async def has_answered() -> bool:
        await trio.lowlevel.checkpoint()
        return lines[-1:] == [("the database answers again", None)]

    async with fresh_database() as url, open_database(url) as database, database.listen("news"):
        listener = await database.read(_other_backend)

        async def is_away() -> bool:
            await trio.lowlevel.checkpoint()
            return bool(lines)

        with log_to(note):
            os.kill(listener, signal.SIGSTOP)
            try:
                await eventually(is_away)
            finally:
                os.kill(listener, signal.SIGCONT)
            await eventually(has_answered)
    assert lines == [("the database does not answer", "no answer for 10 s"), ("the database answers again", None)]
