"""Work on a PostgreSQL that answers wrongly, late, or not at all, behind a proxy that reads its protocol.

Each try inserts a row and reads three; the fault hits one of the two statements, the commit, or a new connection. The
work may end only with the right rows or with DatabaseAwayError. Afterwards the same pool must serve other work, and the
row must be there once after a success, at most once after a failure, and never after one that is not in doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
import trio
from sqlalchemy import text

from coder.coderd.store.engine import sessions
from coder.coderd.store.engine.availability import DatabaseAwayError
from coder.coderd.store.engine.database import Database, Tx, open_database
from tests.kit.server.postgres_server import fresh_database
from tests.kit.stand_ins.postgres_proxy import (
    COMMIT,
    NOTICE,
    Act,
    Fault,
    HostilePostgres,
    Moment,
    close,
    endless,
    error,
    fails,
    half_close,
    hostile_postgres,
    message,
    reset,
    sends,
    silent,
)

ENDS: Mapping[str, Act] = {
    "reset": reset,
    "close": close,
    "half close": half_close,
    "HTTP": sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "bytes of one": sends(b"\xff" * 64),
    "half a row": sends(b"D\0\0\0\x20\0\1\0\0"),
    **{
        f"fatal {state}": sends(error(state, "FATAL"))
        for state in ("40001", "40P01", "53300", "57P01", "57P02", "57P03", "57P05", "25006", "25P03", "08006", "55P03")
    },
}
"""The connection ends: noticed at once."""
REFUSALS = ("40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "57P01", "57P03", "58030", "25006", "08006")
SILENCES: Mapping[str, Act] = {
    "black hole": silent,
    "HTTP, then nothing": sends(b"HTTP/1.1 400 Bad Request\r\n\r\n", silent),
    "row of 2 GiB": sends(b"D\x7f\xff\xff\xff" + b"x" * 1000, silent),
    "row of negative length": sends(b"D\xff\xff\xff\xff" + b"x" * 1000, silent),
    "row of other columns": sends(message(b"D", b"\0\5\0\0\0\1x"), silent),
    "endless notices": endless(message(b"N", NOTICE) * 100, 0.01),
    "slow notices": endless(message(b"N", NOTICE), 0.2),
    "COPY": sends(message(b"G", b"\0\0\0"), silent),
    "authentication": sends(message(b"R", b"\0\0\0\3"), silent),
}
"""The connection stays and the answer never comes: noticed by the limit."""


@dataclass(frozen=True)
class Try:
    name: str
    fault: Fault
    seconds: float = sessions.ANSWER_TIMEOUT


MOMENTS: Mapping[str, tuple[bytes, Moment]] = {
    "the read": (b"the read", Moment.STATEMENT),
    "the read's answer": (b"the read", Moment.ANSWER),
    "the read's second row": (b"the read", Moment.ROW),
    "the commit": (COMMIT, Moment.STATEMENT),
    "the commit's answer": (COMMIT, Moment.ANSWER),
    "a new connection": (b"", Moment.ACCEPT),
    "the login": (b"", Moment.LOGIN),
}


def quick_tries() -> Iterator[Try]:
    for moment, (pattern, when) in MOMENTS.items():
        for name, act in ENDS.items():
            yield Try(f"{moment}: {name}", Fault(pattern, when, act))
    for moment in ("the read", "the commit"):
        for state in REFUSALS:
            yield Try(f"{moment}: refused by {state}", Fault(*MOMENTS[moment], fails(state)))
            yield Try(f"{moment}: always refused by {state}", Fault(*MOMENTS[moment], fails(state), lasting=True))


def slow_tries() -> Iterator[Try]:
    for moment, (pattern, when) in MOMENTS.items():
        for name, act in SILENCES.items():
            yield Try(f"{moment}: {name}", Fault(pattern, when, act), 1.0)


async def make_table(tx: Tx) -> None:
    await tx.execute(text("CREATE TABLE rows_of_tries (id int)"))


async def work(tx: Tx, number: int) -> list[int]:
    await tx.execute(text("INSERT INTO rows_of_tries VALUES (:number)"), {"number": number})
    # A text of its own: a prepared statement has no text to recognize.
    found = await tx.execute(text(f"SELECT part, {number} FROM generate_series(1, 3) part /* the read */"))  # noqa: S608 - a number of ours
    return [row.part for row in found]


async def count(tx: Tx, number: int) -> int:
    found = await tx.execute(text("SELECT count(*) FROM rows_of_tries WHERE id = :number"), {"number": number})
    return int(found.scalar_one())


async def one_try(proxy: HostilePostgres, database: Database, number: int, kind: Try) -> str:
    """Return what is wrong, as a sentence; empty if nothing is."""
    if kind.fault.moment in (Moment.ACCEPT, Moment.LOGIN):
        await database.call(database.engine.dispose)
    proxy.inject(kind.fault)
    failure: Exception | None = None
    time_limit_before, sessions.ANSWER_TIMEOUT = sessions.ANSWER_TIMEOUT, kind.seconds
    try:
        if await database.run(work, number) != [1, 2, 3]:
            return f"{kind.name}: wrong rows"
    except Exception as error:
        failure = error
    finally:
        sessions.ANSWER_TIMEOUT = time_limit_before
    if not proxy.taken.is_set() and kind.seconds == time_limit_before:
        return f"{kind.name}: the fault did not happen"
    proxy.next = None
    if failure is not None and not isinstance(failure, DatabaseAwayError):
        return f"{kind.name}: {failure!r}"
    there = await database.read(count, number)
    allowed = {1} if failure is None else {0, 1} if failure.in_doubt else {0}
    return "" if there in allowed else f"{kind.name}: {there} rows after {failure!r}"


async def play(tries: list[Try]) -> None:
    async with (
        fresh_database(migrated=False) as url,
        hostile_postgres(url) as proxy,
        open_database(proxy.url, pool_size=3) as database,
    ):
        await database.run(make_table)
        wrong = [await one_try(proxy, database, number, kind) for number, kind in enumerate(tries)]
        assert database.pool().in_use == 0
    assert not [sentence for sentence in wrong if sentence]


async def test_sample_of_bad_answers() -> None:
    await play(list(quick_tries())[::16])


async def test_lost_answer_to_commit_writes_once() -> None:
    async with (
        fresh_database(migrated=False) as url,
        hostile_postgres(url) as proxy,
        open_database(proxy.url) as database,
    ):
        await database.run(make_table)
        proxy.inject(Fault(COMMIT, Moment.ANSWER, reset))
        with pytest.raises(DatabaseAwayError) as caught:
            await database.run(work, 1)
        assert caught.value.in_doubt
        proxy.inject(Fault(b"the read", Moment.ANSWER, reset))
        assert await database.run(work, 2) == [1, 2, 3], "what was not committed is done again"
        assert [await database.read(count, number) for number in (1, 2)] == [1, 1]


async def test_silent_database_holds_work_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        fresh_database(migrated=False) as url,
        hostile_postgres(url) as proxy,
        open_database(proxy.url, pool_size=1) as database,
    ):
        await database.run(make_table)
        proxy.inject(Fault(b"the read", Moment.ANSWER, silent))
        monkeypatch.setattr(sessions, "ANSWER_TIMEOUT", 0.2)
        with pytest.raises(DatabaseAwayError), trio.fail_after(60):
            await database.run(work, 1)
        monkeypatch.undo()
        proxy.next = None
        assert await database.read(count, 1) == 0


async def test_wait_for_connection_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fresh_database(migrated=False) as url, open_database(url, pool_size=1) as database:
        begun = trio.Event()
        token = trio.lowlevel.current_trio_token()

        async def hold(tx: Tx) -> None:
            await tx.execute(text("SELECT 1"))
            token.run_sync_soon(begun.set)
            await tx.execute(text("SELECT pg_sleep(600)"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.run, hold)
            await begun.wait()
            monkeypatch.setattr(database.engine.sync_engine.pool, "_timeout", 0.01)
            with pytest.raises(DatabaseAwayError) as caught:
                await database.read(make_table)
            assert not caught.value.in_doubt
            nursery.cancel_scope.cancel()


@pytest.mark.soak
async def test_every_bad_answer() -> None:
    await play(list(quick_tries()))


@pytest.mark.soak
async def test_every_silence() -> None:
    await play(list(slow_tries()))
