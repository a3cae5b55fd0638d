"""Names for the types of SQL expressions: statements and columns whose row types are not known to the type checker.

Functions turn such rows into dataclasses as soon as they read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import Column, ColumnElement, FromClause, Row, Select, Table
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.elements import KeyedColumnElement

Query: TypeAlias = Select[*tuple[Any, ...]]
"""A statement that selects rows."""
SqlRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row that a statement selected."""
SqlValues: TypeAlias = tuple[*tuple[Any, ...]]
"""Some values of a row, one after another."""
SqlColumn: TypeAlias = ColumnElement[Any]
"""A column or an expression of any SQL type."""
SqlTable: TypeAlias = Table[ReadOnlyColumnCollection[str, Column[Any]]]
SqlFrom: TypeAlias = FromClause[ReadOnlyColumnCollection[str, KeyedColumnElement[Any]]]
"""A table, or something else to select from, with any columns."""
ColumnValue: TypeAlias = (
    "str | bytes | bool | int | float | UUID | datetime | timedelta | Sequence[ColumnValue] | "
    "Mapping[str, ColumnValue] | SqlColumn | None"
)
"""A value that a column takes, or the expression that computes it."""
ColumnValues: TypeAlias = dict[str, ColumnValue]
"""Values of a row by column."""
