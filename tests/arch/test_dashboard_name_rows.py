"""Each documented name of the dashboard has a browser test that walks it."""

from __future__ import annotations

from tests.kit.dashboard.name_rows import documented_rows, walked_rows


def test_every_row_is_walked() -> None:
    rows = documented_rows()
    assert len(rows) == len(set(rows)) > 15
    assert set(rows) == walked_rows().keys()
