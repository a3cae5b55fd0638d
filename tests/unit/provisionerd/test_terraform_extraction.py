"""Recorded plans, states and graphs become the recorded resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from coder.provisionerd.terraform.extract import changes
from coder.provisionerd.terraform.extract.document import ExtractError
from coder.provisionerd.terraform.extract.extract import Extracted, extract_plan, extract_state
from tests.kit import terraform_cases as kit

_ROUNDS = [
    (name, suffix)
    for name in kit.cases("extraction")
    for suffix in ("", "-2")
    if (kit.DATA / "extraction" / name / f"expected{suffix}.json").exists()
]


def _compact(value: Any) -> Any:
    """Without nulls: an absent message is absent here and null in the recordings."""
    if isinstance(value, dict):
        return {key: _compact(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    return value


def _check(got: Extracted, want: dict[str, Any]) -> None:
    document = MessageToDict(got.complete, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    assert document == _compact(want["graph_complete"])
    log = [{"level": "WARN", "message": one.message, **one.fields} for one in got.warnings]
    assert log == (want.get("log") or [])


def _outcome(extract: Any, document: Path, dot: str, want: dict[str, Any]) -> None:
    if "error" in want:
        with pytest.raises(ExtractError) as caught:
            extract(kit.load(document), dot)
        assert caught.value.message == want["error"]
    else:
        _check(extract(kit.load(document), dot, lambda: "<fresh>"), want)


@pytest.mark.parametrize(("name", "suffix"), _ROUNDS)
def test_extraction(name: str, suffix: str) -> None:
    case = kit.DATA / "extraction" / name
    want = kit.load(case / f"expected{suffix}.json")
    dot = (case / "graph.dot").read_text()
    _outcome(extract_plan, case / f"plan{suffix}.json", dot, want["plan"])
    _outcome(extract_state, case / f"state{suffix}.json", dot, want["state"])
    plan = kit.load(case / f"plan{suffix}.json")
    complete = want["plan"]["plan_complete"]
    assert changes.daily_cost(plan) == complete["dailyCost"]
    assert changes.ai_task_count(plan) == complete["ai_task_count"]
    replaced = [{"resource": one.resource, "paths": list(one.paths)} for one in changes.resource_replacements(plan)]
    assert replaced == complete["resource_replacements"]
    log = [{"level": "WARN", "output": line} for line in changes.replacement_log(plan)]
    assert log == (want["plan"].get("replacement_log") or [])
