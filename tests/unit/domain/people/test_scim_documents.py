"""SCIM documents in the forms of several providers, by canonical names."""

from __future__ import annotations

from typing import Any

import pytest

from coder.base.json_types import JsonObject
from coder.domain.people.scim_documents import USER_SCHEMA, canonical, patched

PATH: JsonObject = {"op": "replace", "path": "active", "value": False}
EMAIL = {"value": "a@b.c", "primary": True}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"Active": False}, {"active": False}),
        ({"ACTIVE": "False"}, {"active": False}),
        ({"active": "true"}, {"active": True}),
        ({"active": None}, {"active": None}),
        ({f"{USER_SCHEMA.upper()}:ACTIVE": "FALSE"}, {"active": False}),
        ({USER_SCHEMA: {"Active": False, "UserName": "x"}}, {"active": False, "userName": "x"}),
        ({USER_SCHEMA: None}, {}),
        ({"active": False, USER_SCHEMA: {"active": "False"}}, {"active": False}),
        ({"username": "x", "DISPLAYNAME": "y"}, {"userName": "x", "displayName": "y"}),
        ({"Name": {"GIVENNAME": "A", "familyname": "B"}}, {"name": {"givenName": "A", "familyName": "B"}}),
        ({"EMails": [{"Value": "a@b.c", "PRIMARY": "True"}, 1]}, {"emails": [EMAIL, 1]}),
        ({"emails": [{"value": "a@b.c", "primary": "False"}]}, {"emails": [{"value": "a@b.c", "primary": False}]}),
        ({"Title": "x", f"{USER_SCHEMA}:nickName": "y"}, {"Title": "x", "nickName": "y"}),
        ({"urn:example:Thing": {"Active": False}}, {"urn:example:Thing": {"Active": False}}),
    ],
)
def test_names_are_canonicalized(sent: dict[str, Any], read: dict[str, Any]) -> None:
    assert canonical(sent) == read
    assert canonical(read) == read


_NO_TRUTHS: tuple[Any, ...] = ("no", "", "False ", 0, 1, [], {}, [False])


@pytest.mark.parametrize(
    "sent",
    [
        {"active": True, "Active": False},
        {"active": True, USER_SCHEMA: {"active": False}},
        {"userName": "x", f"{USER_SCHEMA}:userName": "y"},
        {"emails": [{"value": "a", "Value": "b"}]},
        {USER_SCHEMA: False},
        *({"active": value} for value in _NO_TRUTHS),
    ],
)
def test_unclear_documents_are_refused(sent: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"active must|occurs twice|must be an object"):
        canonical(sent)


@pytest.mark.parametrize(
    "operation",
    [
        {},
        {"op": "Add"},
        {"value": "FALSE"},
        {"path": "ACTIVE"},
        {"path": f"{USER_SCHEMA}:Active"},
        {"path": USER_SCHEMA, "value": {"Active": "False"}},
        {"path": None, "value": {"ACTIVE": False}},
        {"path": "", "value": {USER_SCHEMA: {"active": "false"}}},
        {"path": None, "value": {f"{USER_SCHEMA}:active": False}},
    ],
)
@pytest.mark.parametrize("title", [str, str.upper, str.capitalize])
def test_deactivating_operation(operation: dict[str, Any], title: Any) -> None:
    written = {title(name): value for name, value in {**PATH, **operation}.items()}
    for name in ("Operations", "operations", "OPERATIONS"):
        assert patched(canonical({name: [{"op": "replace", "path": "active", "value": True}, written]})) == {
            "active": False
        }


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove"},
        {"op": "Remove", "value": None},
        {"op": "remove", "path": f"{USER_SCHEMA}:ACTIVE"},
        {"op": "remove", "path": USER_SCHEMA},
        {"op": "remove", "path": None},
        {"op": "move"},
        {"op": ""},
        {"op": "move", "path": None, "value": {"Active": False}},
        {"path": "active.value"},
        {"path": 'active[value eq "x"]'},
        {"value": None},
        {"value": "no"},
        {"path": None, "value": {"active": None}},
        {"path": USER_SCHEMA, "value": {"active": 0}},
    ],
)
def test_unknown_operation_on_active_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"active|A removal requires a path"):
        patched(canonical({"Operations": [{**PATH, **operation}]}))


@pytest.mark.parametrize(
    "operation",
    [
        1,
        None,
        {},
        {"op": "remove", "path": "emails"},
        {"op": "move", "path": "userName", "value": "x"},
        {"op": "replace", "path": 'emails[type eq "work"].value', "value": "a@b.c"},
        {"op": "replace", "path": ["active"], "value": False},
        {"op": "replace", "path": "name.givenName", "value": "x"},
        {"op": "replace", "value": 1},
    ],
)
def test_operation_on_other_attribute_is_ignored(operation: Any) -> None:
    assert patched(canonical({"Operations": [operation]})) == {}
    assert patched(canonical({"Operations": [operation], "Active": False})) == {"active": False}


@pytest.mark.parametrize("operations", [1, None, {}, [], "x"])
def test_operations_must_be_a_list(operations: Any) -> None:
    assert patched(canonical({"operations": operations, "active": True})) == {"active": True}
