"""Which statements change who somebody is or what they may do, and how other processes hear of it.

The tables whose rows `keys.find_caller` is made from. Triggers on them (migration 0012) notify `CHANNEL` with an empty
payload: many changes of one transaction are one notice.
"""

from __future__ import annotations

import re
from typing import Any

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
"""`groups` and `organizations` because of what is deleted with them."""

_NAMED = re.compile(rf"\b(?:{'|'.join(TABLES)})\b")
_MARK = "identity_changed"


def watch_statements(engine: Any) -> None:
    """Marks the connection of every statement that may write to one of the tables."""
    from sqlalchemy import event

    @event.listens_for(engine, "before_cursor_execute")
    def note(connection: Any, _cursor: Any, statement: str, _values: Any, _context: Any, _many: bool) -> None:
        # A SELECT that writes (a function) is told by the trigger alone.
        if not statement.startswith("SELECT") and _NAMED.search(statement):
            connection.info[_MARK] = True


def take_mark(connection: Any) -> bool:
    """Whether the transaction wrote to the tables, which is forgotten thereby."""
    return bool(connection.info.pop(_MARK, False))
