"""Constraints of our tables as SQL, for rows that may break them: the original's schema has fewer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sqlalchemy import ClauseElement, UniqueConstraint
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from coder.coderd.store.engine.metadata import metadata
from coder.coderd.store.engine.sql_types import SqlTable
from coder.coderd.store.original.step import Step
from coder.coderd.store.tables import load_all

_DIALECT = PGDialect_asyncpg()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Reference:
    """Foreign key of one column."""

    column: str
    table: str
    """Our table that it refers to."""
    key: str


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """Unique index: expressions over the table's own name, and the condition of a partial index."""

    expressions: tuple[str, ...]
    condition: str


@cache
def our_table(name: str) -> SqlTable:
    load_all()
    return metadata.tables[name]


def our_tables() -> list[str]:
    load_all()
    return list(metadata.tables)


def references(step: Step) -> list[Reference]:
    """Return the foreign keys among the step's columns."""
    return [
        Reference(key.parent.name, key.column.table.name, key.column.name)
        for key in sorted(our_table(step.target).foreign_keys, key=lambda key: key.parent.name)
        if key.parent.name in step.columns
    ]


def uniqueness(step: Step) -> list[Uniqueness]:
    """Return the unique indexes over the step's columns, except the primary key that the rows are read in."""
    table = our_table(step.target)
    found = [
        Uniqueness(tuple(_sql(item) for item in index.expressions), _condition(index.dialect_options))
        for index in sorted(table.indexes, key=lambda index: str(index.name))
        if index.unique and {column.name for column in index.columns} <= step.columns.keys()
    ]
    for constraint in sorted(table.constraints, key=lambda item: str(item.name)):
        if isinstance(constraint, UniqueConstraint) and {c.name for c in constraint.columns} <= step.columns.keys():
            found.append(Uniqueness(tuple(_sql(column) for column in constraint.columns), ""))
    key = [column.name for column in table.primary_key]
    if key != [step.cursor] and set(key) <= step.columns.keys():
        found.append(Uniqueness(tuple(_sql(table.c[name]) for name in key), ""))
    return found


def column_type(step: Step, name: str) -> str:
    """Return the SQL type of one of our columns."""
    return our_table(step.target).c[name].type.compile(dialect=_DIALECT)


def time_columns(step: Step) -> list[str]:
    """Return the step's columns that hold times."""
    return [name for name in step.columns if column_type(step, name).startswith("TIMESTAMP")]


def numbered_columns() -> list[tuple[str, str]]:
    """Return the columns that number themselves, as pairs of table and column."""
    load_all()
    return [
        (table.name, column.name)
        for table in metadata.sorted_tables
        for column in table.columns
        if column.identity is not None
    ]


def _condition(options: object) -> str:
    condition = options["postgresql"]["where"]  # type: ignore[index]
    return "" if condition is None else _sql(condition)


def _sql(expression: ClauseElement | str) -> str:
    if isinstance(expression, str):
        return expression
    return str(expression.compile(dialect=_DIALECT, compile_kwargs={"literal_binds": True}))
