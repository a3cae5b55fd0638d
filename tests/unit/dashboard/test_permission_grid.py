"""The role editor's grid against the server's own table of what may be done to what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coder.domain.access.resources import ACTIONS

SOURCE = Path(__file__).resolve().parents[3] / "coder/dashboard/src/features/organization/permission-grid.ts"
_ROW = re.compile(r'\{\s*kind: "([a-z_]+)",[^{}]*?actions: \[([^\]]*)\],?\s*\}')


def grid() -> dict[str, list[str]]:
    text = SOURCE.read_text(encoding="utf-8")
    start = text.index("export const GRID")
    table = text[start : text.index("\n];", start)]
    found = {kind: re.findall(r'"([a-z_]+)"', actions) for kind, actions in _ROW.findall(table)}
    assert len(found) == table.count("kind: ") - 1, "a row is written in another way"  # one is the type's
    return found


@pytest.mark.parametrize(("kind", "actions"), grid().items())
def test_a_row_offers_what_the_server_knows_and_all_of_it(kind: str, actions: list[str]) -> None:
    assert kind in ACTIONS
    assert sorted(actions) == sorted(ACTIONS[kind])
