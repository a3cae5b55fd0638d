"""Properties of a plan's changes: daily cost, replacements, number of AI tasks."""

from __future__ import annotations

import json
from typing import Any

from coder.provisionerd.terraform.extract.document import Json, resources_of_plan
from coder.rpc.proto import provisioner_pb2 as pb


def daily_cost(plan: Json) -> int:
    """Return the sum over all coder_metadata, whether or not they refer to a resource."""
    return sum(item.number("daily_cost") for item in resources_of_plan(plan) if item.type == "coder_metadata")


def ai_task_count(plan: Json) -> int:
    return sum(item.mode == "managed" and item.type == "coder_ai_task" for item in resources_of_plan(plan))


def _replaced(plan: Json) -> list[Json]:
    return [
        change
        for change in plan.get("resource_changes") or []
        if change["change"].get("replace_paths") and not change["type"].startswith("coder_")
    ]


def resource_replacements(plan: Json) -> list[pb.ResourceReplacement]:
    """Return the resources that are replaced, and the attributes that force the replacement."""
    return [
        pb.ResourceReplacement(
            resource=change["address"], paths=[_dotted(p) for p in change["change"]["replace_paths"]]
        )
        for change in _replaced(plan)
    ]


def _dotted(path: list[str | int]) -> str:
    return ".".join(map(str, path))


def replacement_log(plan: Json) -> list[str]:
    """Return the build log's lines about replacements; values marked sensitive stay hidden."""
    lines: list[str] = []
    for change in _replaced(plan):
        details = change["change"]
        lines.append(f"  -/+ {change['address']} (replace)")
        for path in details["replace_paths"]:
            old = _display(path, details.get("before"), details.get("before_sensitive"), None)
            new = _display(path, details.get("after"), details.get("after_sensitive"), details.get("after_unknown"))
            lines.append(f"      ~ {_dotted(path)}: {old} -> {new} (forces replacement)")
    return ["Resource replacements:", *lines] if lines else []


def _display(path: list[str | int], value: Any, sensitive: Any, unknown: Any) -> str:
    for step in path:
        if sensitive is True or unknown is True:
            break
        value, sensitive, unknown = (_step(item, step) for item in (value, sensitive, unknown))
    if _any_true(sensitive):
        return "(sensitive value)"
    if unknown is True:
        return "(known after apply)"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _step(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _any_true(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_any_true(item) for item in value.values())
    if isinstance(value, list):
        return any(_any_true(item) for item in value)
    return value is True
