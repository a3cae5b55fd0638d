"""The API's description: the OpenAPI document, the public types, and answers made from them.

    check("User", answer.json())                  # valid by tests/data/api/types.schema.json
    check_list("Organization", answer.json())
    described("GET", "/api/v2/users/me")          # a User, every field present
    success("POST", "/api/v2/organizations")      # 201

`EXCEPTIONS` names the fields where the recorded release differs from the (newer) schema; the recordings win. Our own
routes, which the reference does not know, are described by our document (coder.coderd.http.openapi). The document is
read once for all tests of a process.
"""

from __future__ import annotations

import csv
import functools
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import jsonschema

from coder.api.base import codec
from coder.appproxy.upgrades.raw_links import EndpointTable, RpcEndpoint
from coder.coderd.app import ENDPOINTS, describe_api
from coder.coderd.composition import build_services
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.blueprints import BLUEPRINTS
from coder.coderd.http.server.application import make_application
from coder.coderd.http.server.declarations import declaration_of, route_of
from coder.coderd.services.foundation.context import Context
from tests.conformance.scope import Operation, in_scope
from tests.kit.paths import DATA

Flaw = Callable[[Any, random.Random], Any]
_PLAIN: dict[str, Any] = {"number": 1, "integer": 1, "boolean": True, "null": None}
_TEXTS = {
    "ProvisionerJobStatus": "succeeded",
    "WorkspaceAgentStatus": "connected",
    "WorkspaceTransition": "start",
    "WorkspaceStatus": "running",
    "WorkspaceAgentLifecycle": "ready",
    "APIAllowListTarget": "*:*",
}
"""Of enums: what lets a command go on."""
_WORDS = {
    "endpoint": "vpn.example.com:51820",
    "type": "coder_external_agent",
    "url": "https://x.example/x",
    "public_key": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg=",
}
"""Of texts in fields of this name: what lets a command go on."""
_TIMES = re.compile(r"(_at|^at|deadline|last_used|timestamp|_seen|_since|^time|^earliest|^latest)$")
_IDS = re.compile(r"ids?$")
_ID = "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"


@cache
def _types() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "api" / "types.schema.json").read_text())["definitions"]
    return found


_WRONG = {
    ("GET", "/api/v2/templates/{template}/versions/{templateversionname}"),
    ("POST", "/api/v2/templates/{template}/versions/archive"),
    ("PUT", "/api/v2/organizations/{organization}/members/roles"),
    ("POST", "/api/v2/workspaceproxies"),
    ("PATCH", "/api/v2/workspaceproxies/{workspaceproxy}"),
}
"""The reference's document says something else of these than its server answers."""


@dataclass(frozen=True, slots=True)
class _Described:
    method: str
    shape: re.Pattern[str]
    schema: dict[str, Any] | None
    "None: nothing is answered."
    status: int
    "0: the reference says nothing of the answer."


def _shape(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)) + "$")


@cache
def _operations() -> list[_Described]:
    rows = csv.DictReader((DATA / "api" / "operations.tsv").read_text().splitlines(), delimiter="\t")
    found = []
    for row in sorted(rows, key=lambda row: row["path"].count("{")):
        name = row["response"].removeprefix("[]").removeprefix("codersdk.").removeprefix("agentsdk.")
        one = {"$ref": f"#/definitions/{name}"}
        schema = {"type": "array", "items": one} if row["response"].startswith("[]") else one if name else None
        is_known = (not name or name in _types()) and (row["method"], row["path"]) not in _WRONG
        status = int(row["success"][:3] or 200) if is_known else 0
        found.append(_Described(row["method"], _shape(row["path"]), schema, 0 if status == 101 else status))
    return found


@cache
def _own() -> list[_Described]:
    """What only our own document describes; it takes a second to make."""
    from tests.kit.api.api_description import operations

    found = []
    for method, path, operation in sorted(operations(), key=lambda row: row[1].count("{")):
        status = min((int(code) for code in operation["responses"] if code[0] == "2"), default=200)
        answer = operation["responses"].get(str(status), {})
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        found.append(_Described(method, _shape(path), schema, status))
    return found


_ONLY_OWN = {"/api/v2/workspaces/offered-versions"}
"""Paths of our own that a path of the original with a parameter matches, too."""


@cache
def _find(method: str, path: str) -> _Described | None:
    for rows in (_own,) if path in _ONLY_OWN else (_operations, _own):
        match = next((row for row in rows() if row.method == method and row.shape.match(path)), None)
        if match is not None and match.status:
            return match
    return None


@cache
def described(method: str, path: str) -> Any:
    """A whole answer to a request; None for one that nothing describes."""
    found = _find(method, path.partition("?")[0])
    return None if found is None or found.schema is None else example(found.schema, "", 7)


def success(method: str, path: str) -> int:
    """The status of a request that went well."""
    found = _find(method, path.partition("?")[0])
    return 200 if found is None else found.status


@cache
def _own_types() -> dict[str, Any]:
    from tests.kit.api.api_description import document

    found: dict[str, Any] = document()["components"]["schemas"]
    return found


def example(schema: dict[str, Any], field: str, depth: int) -> Any:
    """A value of a schema, every field present."""
    if "$ref" in schema:
        place, _, name = unquote(schema["$ref"]).rpartition("/")
        types = _own_types() if place == "#/components/schemas" else _types()
        if name not in types:
            return {}
        if name.startswith("Record<number,") and depth:  # JSON's keys are texts, whatever this says
            return {"1": example(types[name].get("items") or types[name]["additionalProperties"], field, depth - 1)}
        return _TEXTS.get(name) or (example(types[name], field, depth - 1) if depth else None)
    for word in ("allOf", "anyOf", "oneOf"):
        if word in schema:
            return example(schema[word][0], field, depth)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        found = {name: example(inner, name, depth) for name, inner in schema.get("properties", {}).items()}
        more = schema.get("additionalProperties")
        return found | ({"x": example(more, "x", depth) if more else "x"} if isinstance(more, dict) else {})
    if kind == "array":
        return [example(schema["items"], field, depth)] if depth and schema.get("items") else []
    if kind == "string":
        if _TIMES.search(field) or schema.get("format") == "date-time":
            return "2026-11-21T08:34:38.123456Z"
        return _ID if _IDS.search(field) or schema.get("format") == "uuid" else _WORDS.get(field, "x")
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


_PARAMETER = re.compile(r"<[^>]*>|\{[^}]*\}")
METHODS = ("get", "post", "put", "patch", "delete")


@functools.cache
def application() -> Any:
    """An application with all routes that no server runs."""
    nothing: Any = None
    context = Context(ServerConfig(), nothing, nothing, "http://localhost:3000", UUID(int=0))
    context.services = build_services(context)
    return make_application(context, BLUEPRINTS)


@functools.cache
def document() -> dict[str, Any]:
    """As a client reads it: through JSON."""
    found: dict[str, Any] = json.loads(codec.encode(describe_api()))
    return found


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(method in capitals, path, operation) of everything described."""
    for path, methods in document()["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method.upper(), path, methods[method]


def scopes_by_operation() -> dict[str, Any]:
    """What every documented operation asks of a key, by `METHOD /path` with the documents' names of parameters."""
    found = {("GET", _PARAMETER.sub("{}", endpoint.pattern)): endpoint.scope for endpoint in _endpoints()}
    for rule in application().url_map.iter_rules():
        said = route_of(application().view_functions[rule.endpoint])
        if said is not None:
            shape = _PARAMETER.sub("{}", rule.rule)
            found |= {(method, shape): said.scope for method in said.methods or ("GET",)}
    adapter = application().url_map.bind("localhost")

    def scope_of(item: Operation) -> Any:
        shape = (item.method, _PARAMETER.sub("{}", item.path))
        if shape in found:
            return found[shape]
        endpoint, _ = adapter.match(item.path, item.method)  # one of several that a parameter of ours stands for
        return declaration_of(application().view_functions[endpoint]).scope

    return {item.name: scope_of(item) for item in in_scope()}


def _endpoints() -> list[RpcEndpoint]:
    """Where our own processes come in."""
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    return table.endpoints


_FILE = Path(__file__).resolve().parents[2] / "data" / "api" / "types.schema.json"

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


def changing(parameter: str) -> set[str]:
    """`METHOD rule` of every route that is no reading one and has the parameter in its path."""
    found = set()
    for rule in application().url_map.iter_rules():
        said = route_of(application().view_functions[rule.endpoint])
        if said is not None and f"<{parameter}>" in rule.rule:
            found |= {f"{method} {rule.rule}" for method in said.methods if method not in {"GET", "HEAD", "OPTIONS"}}
    return found
