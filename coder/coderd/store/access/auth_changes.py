"""Statements that change identities or permissions, and their notices to other processes.

The tables whose rows `keys.find_caller` reads. Triggers on them (migration 0012) notify `CHANNEL` with an empty
payload: several changes in one transaction are one notice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import DBAPICursor, ExecutionContext

    from coder.coderd.store.engine.sql_types import ColumnValue

CHANNEL = "identity_changed"

TABLES = (
    "users",
    "api_keys",
    "organizations",
    "organization_members",
    "groups",
    "group_members",
    "custom_roles",
)
"""`groups` and `organizations` because of the rows deleted with them."""

_NAMED = re.compile(rf"\b(?:{'|'.join(TABLES)})\b")
_MARK = "identity_changed"


def watch_statements(engine: Engine) -> None:
    """Mark the connection of every statement that may write to one of the tables."""
    from sqlalchemy import event

    @event.listens_for(engine, "before_cursor_execute")
    def note(
        connection: Connection,
        _cursor: DBAPICursor,
        statement: str,
        _values: Collection[ColumnValue],
        _context: ExecutionContext | None,
        _many: bool,
    ) -> None:
        # A SELECT that writes (through a function) is reported by the trigger alone.
        if not statement.startswith("SELECT") and _NAMED.search(statement):
            connection.info[_MARK] = True


def take_mark(connection: Connection | None) -> bool:
    """Return whether the transaction wrote to the tables, and clear the mark."""
    return connection is not None and bool(connection.info.pop(_MARK, False))
