"""The cheap form of scripts/conformance: every documented route exists and requires authentication."""

from __future__ import annotations

import json

import httpx

from tests.conformance.__main__ import BASELINE, regressions
from tests.conformance.scope import in_scope, permission_rows
from tests.conformance.success import Outcome, judge
from tests.conformance.walk import doors
from tests.conformance.world import Populated
from tests.kit.server.server_in_process import running_coderd


async def test_the_routes_are_there() -> None:
    async with running_coderd(first_user=True) as world:
        outcomes = await doors(Populated(world))
    problems = [f"{item.operation.name}: {item.problems}" for item in outcomes if item.problems]
    assert not problems, "\n".join(problems)
    implemented = sum(item.implemented for item in outcomes)
    expected = json.loads(BASELINE.read_text())["implemented"]
    missing = "\n".join(item.operation.name for item in outcomes if not item.implemented)
    assert implemented >= expected, f"{implemented} of {expected} routes are left. Missing:\n{missing}"


def test_scope_matches_product() -> None:
    names = {operation.name for operation in in_scope()}
    assert "GET /api/v2/users/{user}" in names
    assert not [name for name in names if "/chats" in name or "/ai-gateway" in name or "/licenses" in name]
    assert len(permission_rows()) == 300


def test_only_worse_is_regression() -> None:
    before = json.loads(BASELINE.read_text())
    assert regressions(before) == []
    assert regressions({**before, "implemented": before["implemented"] - 1})
    cells = before["permissions"]
    assert regressions({"permissions": {**cells, "matched": cells["matched"] - 1}})
    assert regressions({"permissions": {"cells": 3, "matched": 1}}) == [], "a part of the areas is no regression"


def judged(name: str, response: httpx.Response) -> Outcome:
    outcome = Outcome(next(operation for operation in in_scope() if operation.name == name))
    judge(outcome, response)
    return outcome


def test_opened_stream_has_no_body() -> None:
    """Unless a recorded exchange has its messages, which the replay compares."""
    silent = judged("GET /api/v2/workspaceagents/{workspaceagent}/coordinate", httpx.Response(101))
    assert (silent.opened, silent.checked, silent.valid) == (True, False, True)
    reported = judged("GET /api/v2/workspaces/{workspace}/watch-ws", httpx.Response(101))
    assert (reported.opened, reported.checked, reported.valid) == (False, True, True)


def test_accepted_body_is_compared() -> None:
    name = "POST /api/experimental/tasks/{user}/{task}/pause"
    assert judged(name, httpx.Response(202, json={"workspace_build": None})).valid
    wrong = judged(name, httpx.Response(202, json={"workspace_build": {"id": "x"}}))
    assert not wrong.valid and "created_at" in wrong.why()
