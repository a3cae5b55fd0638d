"""Whether a transaction took effect whose answer to the commit was lost: PostgreSQL keeps the outcome by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from coder.coderd.store.engine.availability import means_temporary

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

Fate = Literal["committed", "aborted", "in progress"]


async def transaction_id(tx: Tx) -> str:
    """Return the id of this transaction, for `fate_of` on any later connection."""
    return str((await tx.execute(text("SELECT pg_current_xact_id()::text"))).scalar_one())


async def fate_of(tx: Tx, number: str) -> Fate:
    """Return what became of a recent transaction. One that the database does not know was lost with a failover."""
    try:
        fate = (
            await tx.execute(text("SELECT pg_xact_status(CAST(CAST(:id AS text) AS xid8))"), {"id": number})
        ).scalar()
    except DBAPIError as error:
        if means_temporary(error):
            raise
        return "aborted"  # the id is of the future: the standby that is the primary now had not heard of it
    return fate or "aborted"
