"""Recorded plans, states and graphs give the recorded resources."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from coder.provisionerd.terraform.explain import explain_plan, explain_state, main
from tests.kit.provisioners import terraform_recordings as kit

_ROUNDS = [
    (name, suffix)
    for name in kit.cases("extraction")
    for suffix in ("", "-2")
    if (kit.DATA / "extraction" / name / f"expected{suffix}.json").exists()
]


def _fresh(value: Any) -> Any:
    """Replace generated app ids by <fresh>."""
    text = json.dumps(value)
    return json.loads(_UUID.sub(lambda found: found[0] if found[0] in _GIVEN else "<fresh>", text))


_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_GIVEN = {"12121212-3434-4545-8686-777777777777"}


@pytest.mark.parametrize(("name", "suffix"), _ROUNDS)
def test_extraction(name: str, suffix: str) -> None:
    case = kit.DATA / "extraction" / name
    want = kit.load(case / f"expected{suffix}.json")
    dot = (case / "graph.dot").read_text()
    plan = explain_plan(kit.load(case / f"plan{suffix}.json"), dot)
    assert _fresh(plan) == want["plan"]
    state = explain_state(kit.load(case / f"state{suffix}.json"), dot)
    assert _fresh(state) == want["state"]


def test_tool(capsys: pytest.CaptureFixture[str]) -> None:
    case = kit.DATA / "extraction" / "one-agent-one-resource"
    graph = str(case / "graph.dot")
    assert main(["extract", "--state", str(case / "state.json"), "--graph", graph]) == 0
    assert json.loads(capsys.readouterr().out) == kit.load(case / "expected.json")["state"]
    inputs = kit.DATA / "parameters" / "conditional-default"
    assert main(["parameters", str(inputs), "--inputs", str(inputs / "inputs.json")]) == 0
    assert json.loads(capsys.readouterr().out) == kit.load(inputs / "expected.json")
    assert main(["extract", "--plan", str(case / "main.tf"), "--graph", graph]) == 1
    assert capsys.readouterr().err.startswith("error: ")
