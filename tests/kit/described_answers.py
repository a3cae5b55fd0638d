"""Answers as the reference describes them, and the same with something wrong in them.

answers = DescribedAnswers(random.Random(7), flaw)
answers("GET", "/api/v2/users/me")  # JSON text of a User with one flaw
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.kit.paths import DATA

Flaw = Callable[[Any, random.Random], Any]
_PLAIN: dict[str, Any] = {"number": 1, "integer": 1, "boolean": True, "null": None}
_TEXTS = {
    "ProvisionerJobStatus": "succeeded", "WorkspaceAgentStatus": "connected", "WorkspaceTransition": "start",
    "WorkspaceStatus": "running", "WorkspaceAgentLifecycle": "ready", "APIAllowListTarget": "*:*",
}  # fmt: skip
"""Of enums: what lets a command go on."""
_TIMES = re.compile(r"(_at|deadline|last_used|timestamp|_seen)$")
_IDS = re.compile(r"ids?$")
_ID = "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"


@cache
def _types() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "api" / "types.schema.json").read_text())["definitions"]
    return found


@cache
def _operations() -> list[tuple[str, re.Pattern[str], str]]:
    rows = csv.DictReader((DATA / "api" / "operations.tsv").read_text().splitlines(), delimiter="\t")
    return [
        (row["method"], re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(row["path"])) + "$"), row["response"])
        for row in sorted(rows, key=lambda row: row["path"].count("{"))
    ]


@cache
def described(method: str, path: str) -> Any:
    """A whole answer to a request; None for one the reference does not describe."""
    plain = path.partition("?")[0]
    name = next((kind for verb, shape, kind in _operations() if verb == method and shape.match(plain)), "")
    many = name.startswith("[]")
    name = name.removeprefix("[]").removeprefix("codersdk.")
    if name not in _types():
        return [] if many else None
    one = example({"$ref": f"#/definitions/{name}"}, "", 6)
    return [one] if many else one


def example(schema: dict[str, Any], field: str, depth: int) -> Any:
    """A value of a schema, every field present."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in _types():  # Record<string, …>
            return {}
        return _TEXTS.get(name) or (example(_types()[name], field, depth - 1) if depth else None)
    for word in ("allOf", "anyOf", "oneOf"):
        if word in schema:
            return example(schema[word][0], field, depth)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: example(inner, name, depth) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"], field, depth)] if depth and schema.get("items") else []
    if kind == "string":
        return "2026-11-21T08:34:38.123456Z" if _TIMES.search(field) else _ID if _IDS.search(field) else "x"
    return _PLAIN.get(str(kind))


# ---- what may be wrong with a value, everywhere in it


def everywhere(change: Flaw) -> Flaw:
    """`change` at every leaf and at every list."""

    def walk(value: Any, chance: random.Random) -> Any:
        if isinstance(value, dict):
            return {key: walk(inner, chance) for key, inner in value.items()}
        if isinstance(value, list) and value:
            return change([walk(inner, chance) for inner in value], chance)
        return change(value, chance)

    return walk


def _drop(value: Any, chance: random.Random) -> Any:
    """A fifth of all fields is missing."""
    if isinstance(value, dict):
        return {key: _drop(inner, chance) for key, inner in value.items() if chance.random() > 0.2}
    return [_drop(inner, chance) for inner in value] if isinstance(value, list) else value


def _lists_null(value: Any, _chance: random.Random) -> Any:
    return None if isinstance(value, list) else value


def _lists_empty(value: Any, _chance: random.Random) -> Any:
    return [] if isinstance(value, list) else value


def _other_type(value: Any, chance: random.Random) -> Any:
    """Every tenth leaf is of another type."""
    if isinstance(value, list) or chance.random() > 0.1:
        return value
    return chance.choice([None, 0, -1, "", "x", [], {}, True, 1e300, "9999-99-99T99:99:99Z"])


def _as_null(value: Any, chance: random.Random) -> Any:
    return None if chance.random() < 0.2 and not isinstance(value, list) else value


def _no_status(value: Any, chance: random.Random) -> Any:
    """Nothing says how far anything is: a command that waits for a word must not wait for ever."""
    if isinstance(value, dict):
        return {key: _no_status(inner, chance) for key, inner in value.items() if not key.endswith("status")}
    return [_no_status(inner, chance) for inner in value] if isinstance(value, list) else value


FLAWS: dict[str, Flaw] = {
    "no status": _no_status,
    "whole": lambda value, _chance: value,
    "missing fields": _drop,
    "lists null": everywhere(_lists_null),
    "lists empty": everywhere(_lists_empty),
    "wrong types": everywhere(_other_type),
    "nulls": everywhere(_as_null),
}
