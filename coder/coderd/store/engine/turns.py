"""Long work inside a transaction, done in turns, since the loop of the database is shared.

A provisioner may report eight thousand resources in one message. Loops over them await `Turns.rest` for each, and rows
are written in batches, because a driver prepares all rows of a statement together.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from sqlalchemy import insert

from coder.coderd.store.engine.database import let_others_run
from coder.coderd.store.engine.sql_types import ColumnValue, SqlTable

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

TURN = 0.002
"""Ours: seconds of work after which other tasks run."""
ROWS = 64
"""Ours: rows of one statement, which take about that long to prepare."""


class Turns:
    """Turns of one piece of work."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + TURN

    async def rest(self) -> None:
        """Yield from time to time; to be awaited for each of many items."""
        if time.perf_counter() > self._until:
            await let_others_run()
            self._until = time.perf_counter() + TURN


async def insert_rows(tx: Tx, table: SqlTable, rows: Iterable[Mapping[str, ColumnValue]]) -> None:
    """Insert all rows in order; each is generated when its statement is built."""
    waiting = iter(rows)
    while values := list(islice(waiting, ROWS)):
        await tx.execute(insert(table), values)
