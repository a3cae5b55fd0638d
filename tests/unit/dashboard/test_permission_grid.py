"""The role editor's grid against the server's own table of permitted actions."""

from __future__ import annotations

from coder.domain.access.resources import ACTIONS
from tests.kit.dashboard.source_modules import evaluate, needs_node


@needs_node
def test_grid_offers_every_action_of_server() -> None:
    grid = {row["kind"]: sorted(row["actions"]) for row in evaluate("permission-grid.ts", "module.GRID")}
    assert grid
    assert grid == {kind: sorted(ACTIONS[kind]) for kind in grid}
