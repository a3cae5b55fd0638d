"""The cheap form of scripts/conformance: every documented route is there and asks who comes."""

from __future__ import annotations

import json

from tests.conformance.__main__ import BASELINE, regressions
from tests.conformance.scope import in_scope, permission_rows
from tests.conformance.walk import doors
from tests.conformance.world import Populated
from tests.kit.coderd import running_coderd


async def test_the_routes_are_there() -> None:
    async with running_coderd(first_user=True) as world:
        outcomes = await doors(Populated(world))
    problems = [f"{item.operation.name}: {item.problems}" for item in outcomes if item.problems]
    assert not problems, "\n".join(problems)
    implemented = sum(item.implemented for item in outcomes)
    wanted = json.loads(BASELINE.read_text())["implemented"]
    missing = "\n".join(item.operation.name for item in outcomes if not item.implemented)
    assert implemented >= wanted, f"{implemented} of {wanted} routes are left. Missing:\n{missing}"


def test_the_scope_leaves_out_what_the_product_leaves_out() -> None:
    names = {operation.name for operation in in_scope()}
    assert "GET /api/v2/users/{user}" in names
    assert not [name for name in names if "/chats" in name or "/ai-gateway" in name or "/licenses" in name]
    assert len(permission_rows()) == 300


def test_only_what_is_worse_is_a_regression() -> None:
    before = json.loads(BASELINE.read_text())
    assert regressions(before) == []
    assert regressions({**before, "implemented": before["implemented"] - 1})
    cells = before["permissions"]
    assert regressions({"permissions": {**cells, "matched": cells["matched"] - 1}})
    assert regressions({"permissions": {"cells": 3, "matched": 1}}) == [], "a part of it is no regression"
