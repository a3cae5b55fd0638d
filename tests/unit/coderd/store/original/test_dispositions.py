"""No table or column of the original is forgotten by the import."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.coderd.store.original import left_out
from coder.coderd.store.original.constraints import our_table
from coder.coderd.store.original.dispositions import Disposition, dispositions, page
from coder.coderd.store.original.known_columns import COLUMNS, UNCHECKED
from coder.coderd.store.original.step import Step
from coder.coderd.store.original.steps import STEPS
from tests.kit.original.schema import describe

PAGE = Path(__file__).parents[5] / "docs" / "import-tables.md"


def test_known_columns_are_described() -> None:
    described = {table: {column.name for column in columns} for table, columns in describe().tables.items()}
    assert {table: set(columns) for table, columns in COLUMNS.items()} == described
    keys = {table for table, _ in describe().primary} | {table for table, *_ in describe().foreign}
    assert keys - described.keys() == UNCHECKED - {"schema_migrations"}


@pytest.mark.parametrize("row", dispositions(), ids=lambda row: row.table)
def test_table_has_one_result(row: Disposition) -> None:
    assert not row.forgotten
    assert (row.table in left_out.TABLES) + (row.table in left_out.DERIVED) + any(
        row.table in step.tables for step in STEPS
    ) == 1
    assert {name for name, _ in row.left_out} <= COLUMNS.get(row.table, frozenset())
    assert row.detail


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.label)
def test_step_fills_required_columns(step: Step) -> None:
    columns = our_table(step.target).columns
    assert step.columns.keys() <= {column.name for column in columns}
    required = {c.name for c in columns if not c.nullable and c.server_default is None and c.identity is None}
    assert required <= step.columns.keys()
    assert not step.cursor or [column.name for column in our_table(step.target).primary_key] == [step.cursor]
    generated = {column.name for column in columns if column.identity is not None}
    assert bool(step.natural_key) == bool(generated - step.columns.keys())


def test_reasons_name_existing_tables() -> None:
    assert left_out.COLUMNS.keys() <= {table for step in STEPS for table in step.tables}
    assert len({step.label for step in STEPS}) == len(STEPS)


def test_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run scripts/generate-import-tables"
