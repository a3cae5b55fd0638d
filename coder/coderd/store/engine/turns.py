"""Long work inside a transaction, done in turns: the loop of the database is everybody's.

A provisioner may report eight thousand resources at once. Whatever walks through them awaits `Turns.rest` for each, and
rows are written some at a time, for a driver prepares all rows of a statement at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from coder.coderd.store.engine.database import let_others_run

if TYPE_CHECKING:
    from sqlalchemy import Table

    from coder.coderd.store.engine.database import Tx

TURN = 0.002
"Ours: seconds of work after which others run."
ROWS = 64
"Ours: rows of one statement, which are prepared in about so long."


class Turns:
    """Of one piece of work."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + TURN

    async def rest(self) -> None:
        """To be awaited for each of many things: once in a while it lets others run."""
        if time.perf_counter() > self._until:
            await let_others_run()
            self._until = time.perf_counter() + TURN


async def insert_rows(tx: Tx, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """All of them, in their order; each is asked for when its statement is made."""
    waiting = iter(rows)
    while values := list(islice(waiting, ROWS)):
        await tx.execute(insert(table), values)
