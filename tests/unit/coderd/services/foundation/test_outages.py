"""Commits whose answer was lost: work that its caller repeats takes effect once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from coder.coderd.services.foundation.outages import run_once, settling_doubts
from coder.coderd.store.engine.database import TransactionId, Tx, fate_of, open_database, transaction_id
from coder.coderd.store.engine.errors import DatabaseAwayError, OutcomeUnknownError
from tests.kit.server.postgres_server import fresh_database
from tests.kit.stand_ins.postgres_proxy import (
    COMMIT,
    Fault,
    Moment,
    ProxiedConnection,
    close,
    fails,
    hostile_postgres,
    reset,
)


async def make_table(tx: Tx) -> None:
    await tx.execute(text("CREATE TABLE lines (number integer)"))


async def insert(tx: Tx, number: int) -> int:
    await tx.execute(text("INSERT INTO lines VALUES (:number)"), {"number": number})
    return -number


async def numbers(tx: Tx) -> list[int]:
    return list((await tx.execute(text("SELECT number FROM lines ORDER BY number"))).scalars())


@pytest.mark.parametrize("moment", [Moment.STATEMENT, Moment.ANSWER], ids=["commit", "answer"])
async def test_work_in_doubt_is_done_once(moment: Moment) -> None:
    """Whether the commit itself was lost or only its answer."""
    async with (
        fresh_database(migrated=False) as url,
        hostile_postgres(url) as proxy,
        open_database(proxy.url) as database,
    ):
        await database.run(make_table)
        for number, act in enumerate((reset, close)):
            proxy.inject(Fault(COMMIT, moment, act))
            assert await run_once(database, insert, number) == -number
            assert proxy.taken.is_set()
        assert await database.read(numbers) == [0, 1]


async def test_settled_doubts_reach_caller() -> None:
    """A commit that was lost is an ordinary outage, one whose answer was lost a success."""
    async with (
        fresh_database(migrated=False) as url,
        hostile_postgres(url) as proxy,
        open_database(proxy.url) as database,
    ):
        await database.run(make_table)
        with settling_doubts(60):
            proxy.inject(Fault(COMMIT, Moment.ANSWER, reset))
            assert await database.run(insert, 1) == -1
            proxy.inject(Fault(COMMIT, Moment.STATEMENT, reset))
            with pytest.raises(DatabaseAwayError) as caught:
                await database.run(insert, 2)
            assert not caught.value.in_doubt
            proxy.inject(lost_then_refused("42501", lasting=True))
            with pytest.raises(DatabaseAwayError) as caught:
                await database.run(insert, 3)
            assert caught.value.in_doubt
        with settling_doubts(0.01):
            proxy.inject(lost_then_refused("57014", lasting=True))
            with pytest.raises(DatabaseAwayError) as caught:
                await database.run(insert, 4)
            assert caught.value.in_doubt
        proxy.next = None
        assert await database.read(numbers) == [1, 3, 4]


def lost_then_refused(sqlstate: str, *, lasting: bool) -> Fault:
    """Return a fault: the answer to the commit is lost, and its status refused."""

    async def act(connection: ProxiedConnection) -> None:
        connection.proxy.next = Fault(b"pg_xact_status", Moment.STATEMENT, fails(sqlstate), lasting=lasting)
        await reset(connection)

    return Fault(COMMIT, Moment.ANSWER, act)


@pytest.mark.parametrize("sqlstate", ["42501", "42883", "0A000"])
async def test_refused_status_is_unknown(sqlstate: str) -> None:
    """A missing privilege, or a server without the function: nothing is repeated, and the caller hears it."""
    async with (
        fresh_database(migrated=False) as url,
        hostile_postgres(url) as proxy,
        open_database(proxy.url) as database,
    ):
        await database.run(make_table)
        proxy.inject(lost_then_refused(sqlstate, lasting=True))
        with pytest.raises(OutcomeUnknownError):
            await run_once(database, insert, 1)
        assert await database.read(numbers) == [1]


async def test_cancelled_status_is_read_again() -> None:
    async with (
        fresh_database(migrated=False) as url,
        hostile_postgres(url) as proxy,
        open_database(proxy.url) as database,
    ):
        await database.run(make_table)
        proxy.inject(lost_then_refused("57014", lasting=False))
        assert await run_once(database, insert, 1) == -1
        assert proxy.next is None
        assert await database.read(numbers) == [1]


async def test_fates_of_transactions() -> None:
    async with fresh_database(migrated=False) as url, open_database(url) as database:
        await database.run(make_table)

        async def write(tx: Tx) -> TransactionId:
            await insert(tx, 1)
            return await transaction_id(tx)

        known = await database.run(write)

        async def fail(tx: Tx) -> None:
            await insert(tx, 2)
            aborted.append(await transaction_id(tx))
            raise LookupError

        aborted: list[TransactionId] = []
        with pytest.raises(LookupError):
            await database.run(fail)
        before = timedelta(days=-1)
        standby = replace(known, server_started=known.server_started + before)
        restarted = replace(standby, began=known.began + before)
        fates = {
            "committed": known,
            "aborted": aborted[0],
            "not assigned, after a failover": replace(standby, number=str(int(known.number or 0) + 10**6)),
            "assigned again by a standby": standby,
            "of the same server, restarted": restarted,
            "too old": replace(known, number="0"),
            "without a row": await database.run(transaction_id),
        }
        assert {name: await database.read(fate_of, each) for name, each in fates.items()} == {
            "committed": "committed",
            "aborted": "aborted",
            "not assigned, after a failover": "aborted",
            "assigned again by a standby": "unknown",
            "of the same server, restarted": "committed",
            "too old": "unknown",
            "without a row": "aborted",
        }
