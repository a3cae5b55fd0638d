"""A real built-in PostgreSQL whose first process is killed: restarted, or given up with an error."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlalchemy import text

from coder.base.errors import CoderError
from coder.base.log import Level
from coder.base.log import also as log_to
from coder.coderd.store.engine import postgres_process, postgres_supervisor
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import Database, Tx, open_database
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.engine.migrate import wait_for_database
from coder.coderd.store.engine.postgres import run_postgres
from tests.kit.agents.scripted_agent import eventually


@pytest.fixture
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="coder-pg-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _pid(folder: Path) -> int:
    return int((folder / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])


async def _execute(database: Database, statement: str) -> object:
    async def work(tx: Tx) -> object:
        answer = await tx.execute(text(statement))
        return answer.scalar() if answer.returns_rows else None

    return await database.run(work)


async def _is_connected(database: Database) -> bool:
    try:
        return await _execute(database, "SELECT 1") == 1
    except DatabaseAwayError:
        return False


@pytest.mark.parametrize("with_pidfd", [True, False], ids=["pidfd", "without pidfd"])
async def test_a_killed_postmaster_is_replaced(data: Path, with_pidfd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its data, under the same pool and the same listening connection."""
    if not with_pidfd:

        def refuse(_pid: int) -> int:
            raise PermissionError

        monkeypatch.setattr(os, "pidfd_open", refuse)
        monkeypatch.setattr(postgres_process, "_POLL", 0.01)
    logged: list[tuple[str, dict[str, Any]]] = []

    def note(_level: Level, _at: datetime, _name: str, message: str, fields: dict[str, Any]) -> None:
        logged.append((message, fields))

    with log_to(note):
        first = await _kill_and_return(data)
    reasons = [fields["how"] for message, fields in logged if message.startswith("PostgreSQL ended by itself")]
    assert reasons == ["killed by SIGKILL"]
    assert not postgres_process.is_alive(first)


async def _kill_and_return(data: Path) -> int:
    async with (
        run_postgres(data) as url,
        open_database(url) as database,
        database.listen("news") as notices,
    ):
        await _execute(database, "CREATE TABLE kept AS SELECT generate_series(1, 500)")
        first = _pid(data)
        os.kill(first, signal.SIGKILL)
        with trio.fail_after(60):
            assert await notices.receive() == ("news", RESYNC)
        await eventually(lambda: _is_connected(database))
        assert _pid(data) != first
        assert await _execute(database, "SELECT count(*) FROM kept") == 500
        await _execute(database, "NOTIFY news, 'heard'")
        with trio.fail_after(60):
            assert await notices.receive() == ("news", "heard")
        assert database.availability.away_for() == 0
        return first


async def test_start_waits_for_database(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while PostgreSQL recovers from a crash. A missing database is refused at once."""
    logged: list[str] = []
    waits, start = trio.Event(), postgres_process.start

    def note(_level: Level, _at: datetime, _name: str, message: str, fields: dict[str, Any]) -> None:
        logged.append(message)
        if message == "waiting for the PostgreSQL server":
            waits.set()

    async def start_after_first_try(*arguments: Any, **options: Any) -> Any:
        await waits.wait()
        return await start(*arguments, **options)

    with log_to(note):
        async with run_postgres(data, durable=False) as url:
            monkeypatch.setattr(postgres_supervisor, "start", start_after_first_try)
            os.kill(_pid(data), signal.SIGKILL)
            async with open_database(url) as database:
                await wait_for_database(database, 60)
                assert await _is_connected(database)
            async with open_database(url.replace("/coder?", "/absent?")) as database:
                with pytest.raises(CoderError) as caught:
                    await wait_for_database(database, 1e6)
                assert caught.value.code == "database_unreachable"
    assert logged.count("waiting for the PostgreSQL server") == 1


async def test_orphaned_backends_are_killed(data: Path) -> None:
    """A computing backend does not notice that its postmaster is dead, and keeps the shared memory."""
    async with run_postgres(data, durable=False) as url, open_database(url) as database, trio.open_nursery() as nursery:

        async def compute() -> None:
            with pytest.raises(DatabaseAwayError):
                await _execute(database, "SELECT count(*) FROM generate_series(1, 1000000000000) AS s WHERE s % 7 = 9")

        async def computes() -> bool:
            result = await _execute(
                database, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%% 7 = 9'"
            )
            return result == 1

        nursery.start_soon(compute)
        await eventually(computes)
        os.kill(_pid(data), signal.SIGKILL)
        await eventually(lambda: _is_connected(database))


async def test_failing_starts_end_the_block(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_supervisor, "TRIES", 2)
    monkeypatch.setattr(postgres_supervisor, "FIRST_REST", 0.0)
    monkeypatch.setattr(postgres_supervisor, "_LEAVE_TIMEOUT", 0.0)
    with pytest.raises(CoderError) as ended, trio.fail_after(60):
        async with run_postgres(data, durable=False):
            pid = _pid(data)
            (data / "postgres" / "data" / "PG_VERSION").write_text("broken\n")
            os.kill(pid, signal.SIGKILL)
            await trio.sleep_forever()
    assert ended.value.code == "postgres_failed"
    assert "PostgreSQL ended (killed by SIGKILL) and 2 tries to start it again failed" in ended.value.message
    assert "is not a valid data directory" in ended.value.message
    assert "postgres.log" in ended.value.hint


async def test_repeated_deaths_end_restarts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start succeeds, but never lasts: that counts as failing."""
    monkeypatch.setattr(postgres_supervisor, "TRIES", 2)
    monkeypatch.setattr(postgres_supervisor, "FIRST_REST", 0.0)
    killed: set[int] = set()
    with pytest.raises(CoderError, match="2 tries to start it again failed"):
        async with run_postgres(data, durable=False) as url, open_database(url) as database:
            while True:
                await eventually(lambda: _is_connected(database))
                with contextlib.suppress(FileNotFoundError, IndexError, ValueError):  # the next one writes its file
                    if (pid := _pid(data)) not in killed:
                        killed.add(pid)
                        os.kill(pid, signal.SIGKILL)
    assert len(killed) == 3
