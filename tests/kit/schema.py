"""Validates answers against the public types: tests/data/api/types.schema.json.

    check("User", answer.json())
    check_list("Organization", answer.json())

`EXCEPTIONS` names the fields where the recorded release differs from the (newer) schema; the recordings win.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

_FILE = Path(__file__).resolve().parent.parent / "data" / "api" / "types.schema.json"

EXCEPTIONS = {
    # the recorded server writes `type:id` texts where the schema has objects
    ("APIKey", "allow_list"),
    ("APIKeyWithOwner", "allow_list"),
    # the recorded roles have actions `*`
    ("AssignableRoles", "site_permissions"),
    ("AssignableRoles", "organization_permissions"),
    # empty until the user chooses
    ("UserPreferenceSettings", "code_diff_display_mode"),
    ("UserAppearanceSettings", "theme_mode"),
}

NULLABLE = {"deadline", "max_deadline", "most_recently_seen", "task_id", "environment_variables"}
"""Fields the recorded server writes as null, wherever they stand; the schema only knows them as absent."""


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_FILE.read_text())
    return document


@cache
def _validator(name: str) -> Any:
    document = _document()
    if name not in document["definitions"]:
        raise KeyError(f"no type {name} in the schema")
    return jsonschema.Draft7Validator({"$ref": f"#/definitions/{name}", "definitions": document["definitions"]})


def problems(name: str, value: Any) -> list[str]:
    """What makes `value` no `name`; empty when it is one."""
    found = []
    for error in _leaves(_validator(name).iter_errors(value)):
        field = str(error.absolute_path[0]) if error.absolute_path else ""
        last = str(error.absolute_path[-1]) if error.absolute_path else ""
        if error.instance is None and last in NULLABLE:
            continue
        if (name, field) not in EXCEPTIONS:
            found.append(f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
    return found


def _leaves(errors: Iterable[Any]) -> Iterator[Any]:
    """What is wrong with something that may be null is what is wrong with it as itself; there is one such type."""
    for error in errors:
        others = (
            {part["$ref"] for part in error.validator_value if "$ref" in part} if error.validator == "anyOf" else ()
        )
        if error.instance is None or len(others) != 1:
            yield error
        else:
            yield from _leaves(each for each in error.context if each.validator != "type" or each.relative_path)


def check(name: str, value: Any) -> None:
    """Fails the test when `value` is no `name`."""
    found = problems(name, value)
    assert not found, f"{name}: " + "; ".join(found[:5])


def check_list(name: str, values: Any) -> None:
    assert isinstance(values, list), f"a list of {name} became {values!r}"
    for value in values:
        check(name, value)
