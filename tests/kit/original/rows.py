"""Rows for every table of the original: values by type, references by key, with and without NULL.

Each table gets two rows: one with every column filled, one with NULL where the schema admits it. Tests replace what has
a meaning (`given`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.kit.original.schema import EXTRA, Column, Description, describe

START = datetime(2026, 8, 1, 12, tzinfo=UTC)
ROWS = 2
Value = Any
Rows = dict[str, list[dict[str, Value]]]


def ident(table: str, number: int) -> UUID:
    """Return the id of a row: the same in every run."""
    return UUID(int=(sum(ord(char) * 257**at for at, char in enumerate(table)) % 2**96) << 32 | number)


def order(described: Description) -> list[str]:
    """Return the tables so that each comes after those it refers to; cycles end at nullable columns."""
    needs: dict[str, set[str]] = {table: set() for table in described.tables}
    required: dict[str, set[str]] = {table: set() for table in described.tables}
    for table, columns, target, _ in described.foreign:
        if table in needs and target in needs and table != target:
            needs[table].add(target)
            if not set(columns.split(", ")) <= {c.name for c in described.tables[table] if c.is_nullable}:
                required[table].add(target)
    result: list[str] = []
    while len(result) < len(needs):
        left = sorted(needs.keys() - set(result))
        ready = [table for table in left if needs[table] <= set(result)]
        result += ready or [table for table in left if required[table] <= set(result)][:1]
    return result


def make_rows(given: Mapping[str, list[Mapping[str, Value]]]) -> Rows:
    """Return rows of every table, those of `given` in place of the made ones with their number."""
    described = describe()
    rows: Rows = {}
    for table in order(described):
        changed = given.get(table, [])
        rows[table] = [
            {**_row(described, rows, table, number), **(changed[number] if number < len(changed) else {})}
            for number in range(max(ROWS, len(changed)))
        ]
    return rows


def _row(described: Description, rows: Rows, table: str, number: int) -> dict[str, Value]:
    row = {column.name: _value(described, table, column, number) for column in described.tables[table]}
    for owner, columns, target, keys in described.foreign:
        if owner != table or target in EXTRA:
            continue
        held = rows.get(target, [])
        for name, key in zip(columns.split(", "), keys.split(", "), strict=True):
            column = next(item for item in described.tables[table] if item.name == name)
            missing = not held or (column.is_nullable and (number % 2 or target == "dbcrypt_keys"))
            row[name] = None if missing else held[min(number, len(held) - 1)][key]
    return row


def _value(described: Description, table: str, column: Column, number: int) -> Value:
    name, kind = column.name, column.type
    if column.is_nullable and number % 2:
        return None
    if kind.endswith("[]"):
        return [] if number % 2 or kind not in {"text[]"} else [f"{name}-{number}"]
    if kind in described.enumerations:
        values = described.enumerations[kind]
        return values[number % len(values)]
    if kind.startswith("character varying") or kind == "text":
        return f"{name[:5]}{number}"[: _limit(kind)]
    if kind.startswith("timestamp"):
        at = START + timedelta(hours=number)
        return at.replace(tzinfo=None) if "without" in kind else at
    simple: dict[str, Value] = {
        "uuid": ident(table if name == "id" else f"{table}.{name}", number),
        "boolean": bool(number % 2),
        "bytea": f"{name}{number}".encode().ljust(32, b".")[:32],
        "jsonb": json.dumps({}),
        "inet": "10.1.2.3",
        "date": date(2026, 8, 1 + number),
        "tsvector": None,
        "real": 1.5,
        "double precision": 2.5,
    }
    return simple[kind] if kind in simple else number + 1


def _limit(kind: str) -> int:
    return int(kind.partition("(")[2].rstrip(")")) if "(" in kind else 1000
