"""Fingerprints of the imported tables: an import continues only while the source has the same rows."""

from __future__ import annotations

from collections.abc import Callable

import trio

from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.coderd.store.original.known_columns import COLUMNS
from coder.coderd.store.original.source import Snapshot
from coder.coderd.store.original.step import quoted
from coder.coderd.store.original.steps import STEPS

TABLES = tuple(sorted({table for step in STEPS for table in step.tables} | {"site_configs"}))
"""The original's tables that an import reads."""
_LARGE = {
    # A file's hash stands for its data, which the database then does not read.
    ("files", "data"): "octet_length(data)",
    # A row as text has two digits for each byte, and at most a gigabyte.
    ("workspace_builds", "provisioner_state"): "sha256(provisioner_state)",
}
"""Expressions for columns whose values may have many megabytes."""
_TELL_SECONDS = 1.0


async def read_fingerprints(snapshot: Snapshot, tell: Callable[[str, int, int], None]) -> dict[str, str]:
    """Return a text by table that changes with every change of its rows: their number and the sum of their hashes.

    The sum does not depend on the order of the rows, which a table does not have. Every row is read once and stays in
    the database; that costs a fraction of copying it.
    """
    found: dict[str, str] = {}

    async def tell_regularly() -> None:
        while True:
            tell(f"fingerprints of tables ({TABLES[len(found)]})", len(found), len(TABLES))
            await trio.sleep(_TELL_SECONDS)

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell_regularly)
            for table in TABLES:
                # A query whose rows are all fetched at once may use several processes of the database.
                found[table] = str((await snapshot.rows(_query(table)))[0][0])
            nursery.cancel_scope.cancel()
    return found


def _query(table: str) -> str:
    names = {name: f"t.{quoted(name)}" for name in sorted(COLUMNS.get(table, ()))}
    shortened = {name: expression for (holder, name), expression in _LARGE.items() if holder == table}
    columns = ", ".join({**names, **shortened}.values()) if shortened else "t.*"
    return (  # names of columns from this package
        "SELECT count(*) || ' ' || COALESCE(sum(hashtextextended(whole_row::text, 0)), 0) "  # noqa: S608
        f"FROM (SELECT {columns} FROM {quoted(table)} t) whole_row"
    )


def require_unchanged(earlier: dict[str, str], present: dict[str, str]) -> None:
    """Refuse a source that has other rows than when the import began. Raises CoderError `source_changed`."""
    changed = sorted(table for table in earlier.keys() | present.keys() if earlier.get(table) != present.get(table))
    if changed:
        raise CoderError(
            "source_changed",
            f"the source changed after the import into this database began: {', '.join(changed)}",
            "Stop the original server, and import again into an empty database.",
        )
