"""Fingerprints of the imported tables: an import continues only while the source has the same rows."""

from __future__ import annotations

from collections.abc import Callable

from coder.base.errors import CoderError
from coder.coderd.store.original.source import Snapshot
from coder.coderd.store.original.step import quoted
from coder.coderd.store.original.steps import STEPS

TABLES = tuple(sorted({table for step in STEPS for table in step.tables} | {"site_configs"}))
"""The original's tables that an import reads."""
_ROWS = {
    "files": "SELECT id, hash, created_at, created_by, mimetype, octet_length(data) FROM files",
}
"""Queries for tables whose rows are too large to hash: a file's hash stands for its content."""


async def read_fingerprints(snapshot: Snapshot, tell: Callable[[str, int, int], None]) -> dict[str, str]:
    """Return a text by table that changes with every change of its rows: their number and the sum of their hashes.

    The sum does not depend on the order of the rows, which a table does not have.
    """
    found = {}
    for number, table in enumerate(TABLES):
        rows = _ROWS.get(table, f"SELECT * FROM {quoted(table)}")  # noqa: S608
        sql = (
            f"SELECT count(*) || ' ' || COALESCE(sum(hashtextextended(whole_row::text, 0)), 0) FROM ({rows}) whole_row"  # noqa: S608
        )
        found[table] = str(await snapshot.value(sql))
        tell("fingerprints of tables", number + 1, len(TABLES))
    return found


def require_unchanged(earlier: dict[str, str], present: dict[str, str]) -> None:
    """Refuse a source that has other rows than when the import began. Raises CoderError `source_changed`."""
    changed = sorted(table for table in earlier.keys() | present.keys() if earlier.get(table) != present.get(table))
    if changed:
        raise CoderError(
            "source_changed",
            f"the source changed after the import into this database began: {', '.join(changed)}",
            "Stop the original server, and import again into an empty database.",
        )
