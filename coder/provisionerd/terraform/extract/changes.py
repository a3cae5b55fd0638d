"""Properties of a plan's changes: daily cost, replacements, number of AI tasks."""

from __future__ import annotations

import json

from coder.base.json_types import Json, as_list, as_object, as_text
from coder.provisionerd.terraform.extract.document import JsonObject, objects, resources_of_plan
from coder.rpc.proto import provisioner_pb2 as pb

_Path = list[str | int]


def daily_cost(plan: JsonObject) -> int:
    """Return the sum over all coder_metadata, whether or not they refer to a resource."""
    return sum(item.number("daily_cost") for item in resources_of_plan(plan) if item.type == "coder_metadata")


def ai_task_count(plan: JsonObject) -> int:
    return sum(item.mode == "managed" and item.type == "coder_ai_task" for item in resources_of_plan(plan))


def _replaced(plan: JsonObject) -> list[JsonObject]:
    return [
        change
        for change in objects(plan, "resource_changes")
        if as_object(change["change"]).get("replace_paths") and not as_text(change["type"]).startswith("coder_")
    ]


def resource_replacements(plan: JsonObject) -> list[pb.ResourceReplacement]:
    """Return the resources that are replaced, and the attributes that force the replacement."""
    return [
        pb.ResourceReplacement(
            resource=as_text(change["address"]), paths=[_dotted(path) for path in _replace_paths(change)]
        )
        for change in _replaced(plan)
    ]


def _replace_paths(change: JsonObject) -> list[_Path]:
    paths = as_list(as_object(change["change"])["replace_paths"])
    return [[step for step in as_list(path) if isinstance(step, str | int)] for path in paths]


def _dotted(path: _Path) -> str:
    return ".".join(map(str, path))


def replacement_log(plan: JsonObject) -> list[str]:
    """Return the build log's lines about replacements; values marked sensitive stay hidden."""
    lines: list[str] = []
    for change in _replaced(plan):
        details = as_object(change["change"])
        lines.append(f"  -/+ {change['address']} (replace)")
        for path in _replace_paths(change):
            old = _display(path, details.get("before"), details.get("before_sensitive"), None)
            new = _display(path, details.get("after"), details.get("after_sensitive"), details.get("after_unknown"))
            lines.append(f"      ~ {_dotted(path)}: {old} -> {new} (forces replacement)")
    return ["Resource replacements:", *lines] if lines else []


def _display(path: _Path, value: Json, sensitive: Json, unknown: Json) -> str:
    for step in path:
        if sensitive is True or unknown is True:
            break
        value, sensitive, unknown = (_step(item, step) for item in (value, sensitive, unknown))
    if _any_true(sensitive):
        return "(sensitive value)"
    if unknown is True:
        return "(known after apply)"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _step(value: Json, step: str | int) -> Json:
    if isinstance(value, dict):
        item: Json = value.get(step)
        return item
    values = as_list(value)
    return values[step] if isinstance(step, int) and step < len(values) else None


def _any_true(value: Json) -> bool:
    if isinstance(value, dict):
        return any(_any_true(item) for item in value.values())
    if isinstance(value, list):
        return any(_any_true(item) for item in value)
    return value is True
