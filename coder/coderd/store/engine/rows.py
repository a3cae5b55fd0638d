"""Rows of tables as dataclasses: the fields are written under the columns' names."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from coder.coderd.store.engine.sql_types import ColumnValues

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def column_values(row: DataclassInstance, *without: str) -> ColumnValues:
    """Return values by column, not copied as `dataclasses.asdict` would. `without`: fields that are not columns."""
    return {field.name: getattr(row, field.name) for field in fields(row) if field.name not in without}


def json_time(text: str) -> datetime:
    """Parse a time as Postgres writes it inside JSON."""
    return datetime.fromisoformat(text).astimezone(UTC)
