"""What the import does with each table and column of the original: imported, derived, or not imported with a reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coder.coderd.store.original.known_columns import COLUMNS as KNOWN
from coder.coderd.store.original.known_columns import UNCHECKED
from coder.coderd.store.original.left_out import COLUMNS, DERIVED, TABLES
from coder.coderd.store.original.steps import STEPS


@dataclass(frozen=True, slots=True)
class Disposition:
    """Result of one table."""

    table: str
    result: str
    """imported, derived or not imported."""
    detail: str
    """Our tables, or the reason."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Columns that are not taken, with their reasons."""
    forgotten: tuple[str, ...] = ()
    """Columns that no step reads and that have no reason; a test requires that there are none."""


def dispositions() -> list[Disposition]:
    """Return one row for each table of the original, by name."""
    return [_of(table) for table in sorted(KNOWN.keys() | UNCHECKED)]


def _of(table: str) -> Disposition:
    if table in TABLES:
        return Disposition(table, "not imported", TABLES[table])
    if table in DERIVED:
        return Disposition(table, "derived", DERIVED[table])
    steps = [step for step in STEPS if table in step.tables]
    reasons = COLUMNS.get(table, {})
    used = {word for step in steps for word in re.findall(r"\w+", step.select(with_keys=True))}
    main = [step for step in steps if step.tables[0] == table]
    targets = ", ".join(dict.fromkeys(f"`{step.target}`" for step in main or steps))
    without = [step.left_out for step in main if step.left_out]
    without += [f"rows where {step.refusal.text}" for step in main if step.refusal]
    rows = "; ".join(dict.fromkeys(f"without {text}" for text in without))
    return Disposition(
        table,
        "imported" if main else "derived",
        f"{targets}{f' ({rows})' if rows else ''}" if main else f"part of {targets}",
        tuple(sorted(reasons.items())),
        tuple(sorted(KNOWN.get(table, frozenset()) - used - reasons.keys())),
    )


def page() -> str:
    """Return the page of the documentation."""
    lines = [
        "# Tables of the original in an import",
        "",
        "What [`coder server import`](guides/migrating.md) does with each table of Coder 2.34. Columns that are not",
        "named here are imported. Written by `scripts/generate-import-tables`.",
        "",
        "| table of the original | result | our tables, or the reason | columns that are not taken |",
        "| --- | --- | --- | --- |",
    ]
    for row in dispositions():
        columns = "; ".join(f"`{name}`: {reason}" for name, reason in row.left_out)
        lines.append(f"| `{row.table}` | {row.result} | {row.detail} | {columns} |")
    return "\n".join(lines) + "\n"
