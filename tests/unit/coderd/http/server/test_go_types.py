"""Go's names of types in errors about bodies, compared with the original's description of its API."""

from __future__ import annotations

import functools
import json
import re
import typing
from typing import Any

import msgspec
import pytest

from coder.api.base.refusals import Invalid
from coder.coderd.http.server.declarations import route_of
from coder.coderd.http.server.go_types import BITS, GO_FIELDS, GO_STRUCTS, go_struct, short_name
from coder.coderd.http.server.json import parse_body
from coder.coderd.http.server.json_faults import go_type
from tests.kit.api.api_description import application
from tests.kit.paths import ROOT

SHARED = {"MappingChange"}
"""One class for the bodies of three routes, whose Go types differ."""


def bodies() -> dict[str, set[type]]:
    """Return "METHOD /path" -> the body's class."""
    found: dict[str, set[type]] = {}
    for rule in application().url_map.iter_rules():
        declared = route_of(application().view_functions[rule.endpoint])
        if declared is not None and isinstance(declared.body, type) and issubclass(declared.body, msgspec.Struct):
            for method in declared.methods:
                found.setdefault(f"{method} {re.sub('<[^>]*>', '{}', rule.rule)}", set()).add(declared.body)
    return found


def parts(hint: Any, found: dict[str, type] | None = None) -> dict[str, type]:
    """Return the structs of a type by the names of their Go types."""
    found = {} if found is None else found
    for argument in typing.get_args(hint):
        parts(argument, found)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and short_name(go_struct(hint)) not in found:
        found[short_name(go_struct(hint))] = hint
        for field in typing.get_type_hints(hint).values():
            parts(field, found)
    return found


@functools.cache
def every_part() -> dict[str, type]:
    found: dict[str, type] = {}
    for kinds in bodies().values():
        for kind in kinds:
            parts(kind, found)
    return found


@functools.cache
def schema() -> dict[str, Any]:
    definitions: dict[str, Any] = json.loads((ROOT / "tests/data/api/types.schema.json").read_text())["definitions"]
    return definitions


def enum_of(field: dict[str, Any]) -> str:
    """Return the Go type of a field that holds an enumeration, or a list or map of them; "" for others."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        record = re.fullmatch(r"Record%3Cstring%2C(\w+)%3E", name)
        if record:
            inner = enum_of({"$ref": record[1]})
            return inner and f"map[string]{inner}"
        return name if schema().get(name, {}).get("type") == "string" else ""
    if field.get("type") == "array":
        inner = enum_of(field["items"])
        return inner and f"[]{inner}"
    for option in field.get("anyOf", ()):
        if option != {"type": "null"}:
            return enum_of(option)
    return ""


def without_packages(go_name: str) -> str:
    return re.sub(r"\w+\.", "", go_name)


def test_every_body_has_its_go_type() -> None:
    named = {}
    for line in (ROOT / "tests/data/api/operations.tsv").read_text().splitlines():
        method, path, _, _, body, *_ = line.split("\t")
        named[f"{method} {re.sub('{[^}]*}', '{}', path)}"] = body
    checked = 0
    for route, kinds in bodies().items():
        for kind in kinds:
            if named.get(route) and kind.__name__ not in SHARED:
                assert go_struct(kind) == named[route], route
                checked += 1
    assert checked > 80


def test_every_row_names_a_class() -> None:
    kinds = {kind.__name__ for kind in every_part().values()}
    assert GO_STRUCTS.keys() <= kinds
    for row in GO_FIELDS:
        struct, _, field = row.partition(".")
        assert field in {part.encode_name for part in msgspec.structs.fields(every_part()[struct])}, row


@pytest.mark.parametrize("name", sorted(every_part().keys() & schema().keys()))
def test_every_enumeration_has_its_go_type(name: str) -> None:
    hints = typing.get_type_hints(every_part()[name])
    for field in msgspec.structs.fields(every_part()[name]):
        expected = enum_of(schema()[name]["properties"].get(field.encode_name, {}))
        if hints[field.name] is Any or "Any" in str(hints[field.name]):
            continue  # the view explains it
        if expected:
            assert without_packages(GO_FIELDS.get(f"{name}.{field.encode_name}", "")) == expected, field.name
        else:
            assert GO_FIELDS.get(f"{name}.{field.encode_name}", "int64") in {*BITS, "[]uint8"}, field.name
            assert go_type(hints[field.name])


WRONG = [
    ("AuthorizationRequest", '{"checks": []}', "array", "checks", "map[string]codersdk.AuthorizationCheck"),
    ("AuthorizationRequest", '{"checks": {"a": 5}}', "number", "checks", "codersdk.AuthorizationCheck"),
    ("CreateWorkspaceBuildRequest", '{"state": 5}', "number", "state", "[]uint8"),
    ("CreateWorkspaceBuildRequest", '{"transition": 5}', "number", "transition", "codersdk.WorkspaceTransition"),
    ("CreateTokenRequest", '{"scopes": [{}]}', "object", "scopes", "codersdk.APIKeyScope"),
    ("CreateTokenRequest", '{"scopes": "all"}', "string", "scopes", "[]codersdk.APIKeyScope"),
    ("CreateTokenRequest", '{"lifetime": 1.5}', "number 1.5", "lifetime", "time.Duration"),
    ("UpdateWorkspaceACL", '{"user_roles": {"a": []}}', "array", "user_roles", "codersdk.WorkspaceRole"),
    ("UpdateTemplateACL", '{"group_perms": {"a": 1}}', "number", "group_perms", "codersdk.TemplateRole"),
    ("CreateGroupRequest", '{"quota_allowance": "1"}', "string", "quota_allowance", "int"),
    ("CreateGroupRequest", '{"quota_allowance": 1e30}', "number 1e30", "quota_allowance", "int"),
    ("UpsertWorkspaceAgentPortShareRequest", '{"port": 2147483648}', "number 2147483648", "port", "int32"),
    ("UpsertWorkspaceAgentPortShareRequest", '{"port": -2147483649}', "number -2147483649", "port", "int32"),
    ("UpsertWorkspaceAgentPortShareRequest", '{"port": "80"}', "string", "port", "int32"),
    ("CustomRoleRequest", '{"site_permissions": [5]}', "number", "site_permissions", "codersdk.Permission"),
]


@pytest.mark.parametrize(("struct", "body", "value", "field", "target"), WRONG)
def test_refusals_name_go_types(struct: str, body: str, value: str, field: str, target: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_body(body.encode(), every_part()[struct])
    assert (
        refused.value.detail == f"json: cannot unmarshal {value} into Go struct field {struct}.{field} of type {target}"
    )


def test_nested_numbers_name_their_path() -> None:
    kind = every_part()["UpdateTemplateMeta"]
    with pytest.raises(Invalid) as refused:
        parse_body(b'{"autostop_requirement": {"weeks": 9223372036854775808}}', kind)
    assert refused.value.detail == (
        "json: cannot unmarshal number 9223372036854775808 into Go struct field "
        "TemplateAutostopRequirement.autostop_requirement.weeks of type int64"
    )
