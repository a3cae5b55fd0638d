"""Rows of tables as dataclasses: what is written is the fields, by the columns' names."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def column_values(row: DataclassInstance, *without: str) -> dict[str, Any]:
    """Values by column, not copied as `dataclasses.asdict` would. `without`: fields that are columns of no table."""
    return {field.name: getattr(row, field.name) for field in fields(row) if field.name not in without}


def json_time(text: str) -> datetime:
    """A moment as Postgres writes it inside JSON."""
    return datetime.fromisoformat(text).astimezone(UTC)
