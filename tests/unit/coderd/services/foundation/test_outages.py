"""Commits whose answer was lost: work that its caller repeats takes effect once."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from coder.coderd.services.foundation.outages import run_once
from coder.coderd.store.engine.database import Tx, fate_of, open_database
from tests.kit.server.postgres_server import fresh_database
from tests.kit.stand_ins.postgres_proxy import COMMIT, Fault, Moment, close, hostile_postgres, reset


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


async def test_unknown_transaction_was_lost() -> None:
    """After a failover to a standby that had not heard of it."""
    async with fresh_database(migrated=False) as url, open_database(url) as database:
        assert await database.read(fate_of, str(2**40)) == "aborted"
