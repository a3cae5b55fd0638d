"""What of the original's rows cannot be taken, computed at the source without writing anything."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coder.coderd.store.original.constraints import Uniqueness, references, time_columns, uniqueness
from coder.coderd.store.original.driver import Values
from coder.coderd.store.original.left_out import TABLES
from coder.coderd.store.original.source import Snapshot
from coder.coderd.store.original.step import Reason, Step, is_representable, quoted
from coder.coderd.store.original.steps import STEPS

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Rows of a step that are not taken."""

    reason: str
    count: int
    examples: tuple[str, ...] = ()


async def count_rows(snapshot: Snapshot, step: Step) -> tuple[int, int]:
    """Return the numbers of the source's rows and of those that the step takes."""
    row = (await snapshot.rows(step.count()))[0]
    return row[0], row[1]


async def find_problems(snapshot: Snapshot, step: Step) -> list[NotTaken]:
    """Return the rows that refer to an object that is not there, and those that a unique index does not admit."""
    problems = []
    earlier = ""
    first = quoted(next(iter(step.columns)))
    for reference in references(step):
        holder = next(item for item in STEPS if item.target == reference.table).tables[0]
        column = f"q.{quoted(reference.column)}"
        condition = (
            f"{column} IS NOT NULL AND NOT EXISTS (SELECT FROM {quoted(holder)} r "
            f"WHERE r.{quoted(reference.key)} = {column})"
        )
        rows = f"FROM ({step.select()}) q WHERE {condition}{earlier}"
        earlier += f" AND NOT ({condition})"  # a row counts once
        if count := await snapshot.value(f"SELECT count(*) {rows}"):
            examples = await snapshot.rows(f"SELECT q.{first}::text {rows} LIMIT {_EXAMPLES}")
            problems.append(NotTaken(missing_reason(reference.column, holder), count, _texts(examples)))
    for unique in uniqueness(step):
        duplicates = _duplicates(step, unique)
        if count := await snapshot.value(f"SELECT COALESCE(sum(n - 1), 0)::bigint FROM ({duplicates}) d"):  # noqa: S608
            examples = await snapshot.rows(f"SELECT d.value FROM ({duplicates}) d LIMIT {_EXAMPLES}")  # noqa: S608
            problems.append(NotTaken(CONFLICT, count, _texts(examples)))
    return problems


async def find_outside(snapshot: Snapshot, step: Step, left: int) -> list[NotTaken]:
    """Return the reasons for the step's `left` rows that its query leaves out."""
    reasons = []
    if step.refusal:
        condition = f"{step.where or 'true'} AND ({step.refusal.condition})"
        sql = f"SELECT {step.refusal.name}::text FROM {step.source} WHERE {condition} ORDER BY 1"  # noqa: S608
        if names := _texts(await snapshot.rows(sql)):
            reasons.append(NotTaken(step.refusal.text, len(names), names))
            left -= len(names)
    if left and step.left_out:
        reasons.append(NotTaken(step.left_out, left))
    return reasons


async def find_changes(snapshot: Snapshot, step: Step) -> list[NotTaken]:
    """Return the rows that are taken without some of their values."""
    reasons = [*step.changes, *_times(step)]
    if not reasons:
        return []
    source = f"FROM {step.source} WHERE {step.condition or 'true'}"
    counts = ", ".join(f"count(*) FILTER (WHERE {reason.condition})" for reason in reasons)
    changed = []
    row = (await snapshot.rows(f"SELECT {counts} {source}"))[0]
    for reason, count in zip(reasons, row, strict=True):
        if count:
            sql = f"SELECT ({reason.name})::text {source} AND ({reason.condition}) ORDER BY 1 LIMIT {_EXAMPLES}"
            changed.append(NotTaken(reason.text, count, _texts(await snapshot.rows(sql))))
    return changed


def _times(step: Step) -> list[Reason]:
    """Return the reasons for times that Python does not have."""
    reasons = []
    for name in time_columns(step):
        expression = step.columns[name]
        column = re.search(r"\bs\.\w+", expression)
        instead = "no time" if expression.startswith("CASE") else "the nearest one"
        reasons.append(
            Reason(
                f"NOT ({is_representable(column[0] if column else expression)})",
                f"{name} is not in the years 1 to 9999; it is stored as {instead}",
                next(iter(step.columns.values())),
            )
        )
    return reasons


CONFLICT = "another row has the same name or value, which must be unique here"


def missing_reason(column: str, table: str) -> str:
    """Return the reason for rows with a dangling reference."""
    return f"{column} names a row of {table} that does not exist"


def _duplicates(step: Step, unique: Uniqueness) -> str:
    expressions = ", ".join(unique.expressions)
    conditions = [f"{item} IS NOT NULL" for item in unique.expressions]
    if unique.condition:
        conditions.append(f"({unique.condition})")
    return (
        f"SELECT count(*) AS n, concat_ws(' ', {expressions}) AS value "  # noqa: S608
        f"FROM ({step.select()}) AS {quoted(step.target)} WHERE {' AND '.join(conditions)} "
        f"GROUP BY {expressions} HAVING count(*) > 1"
    )


def _texts(rows: list[Values]) -> tuple[str, ...]:
    return tuple(str(row[0]) for row in rows)


async def count_left_out(snapshot: Snapshot) -> dict[str, int]:
    """Return the numbers of rows in tables that are not imported, without empty and absent ones."""
    counts = {}
    for table in TABLES:
        if await snapshot.value("SELECT to_regclass($1)::text", table) is None:
            continue
        if number := await snapshot.value(f"SELECT count(*) FROM {quoted(table)}"):  # noqa: S608
            counts[table] = number
    return counts


async def encryption_keys(snapshot: Snapshot) -> dict[str, str]:
    """Return the ids of the keys that encrypt imported values, with the text that each has encrypted as a test."""
    digests: set[str] = set()
    for step in STEPS:
        for expression in step.sealed.values():
            sql = f"SELECT DISTINCT {expression} FROM {step.source} WHERE {expression} IS NOT NULL"  # noqa: S608
            digests |= {row[0] for row in await snapshot.rows(sql)}
    tests = {
        row[0]: row[1]
        for row in await snapshot.rows(
            "SELECT COALESCE(active_key_digest, revoked_key_digest, ''), test FROM dbcrypt_keys"
        )
    }
    return {digest: tests.get(digest, "") for digest in sorted(digests)}
