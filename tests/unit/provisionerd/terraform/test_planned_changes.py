"""Changes of a plan for previews: actions, attributes, and what stays hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coder.provisionerd.redact import REPLACEMENT, Redactor, state_secrets
from coder.provisionerd.terraform.extract.planned import (
    MAX_ATTRIBUTES,
    MAX_RESOURCES,
    UNKNOWN,
    planned_changes,
)

TOKEN = "AbCdEfGhIj-0123456789abcdefghij"


def change(actions: list[str], mode: str = "managed", name: str = "x", **details: Any) -> dict[str, Any]:
    return {
        "address": f"cloud_vm.{name}",
        "mode": mode,
        "type": "cloud_vm",
        "name": name,
        "change": {"actions": actions, **details},
    }


def attributes(secrets: Redactor | None = None, **details: Any) -> dict[str, tuple[str, str, bool]]:
    plan = {"resource_changes": [change(["update"], **details)]}
    (resource,) = planned_changes(plan, secrets or Redactor()).resources
    return {item.path: (item.before, item.after, item.forces_replacement) for item in resource.attributes}


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        (["no-op"], "keep"),
        (["create"], "create"),
        (["update"], "update"),
        (["delete"], "delete"),
        (["delete", "create"], "replace"),
        (["create", "delete"], "replace"),
        (["forget"], "forget"),
    ],
)
def test_action_of_resource(actions: list[str], action: str) -> None:
    (resource,) = planned_changes({"resource_changes": [change(actions)]}, Redactor()).resources
    assert (resource.address, resource.type, resource.name, resource.action) == ("cloud_vm.x", "cloud_vm", "x", action)


def test_data_sources_are_left_out() -> None:
    plan = {"resource_changes": [change(["read"], mode="data"), change(["read"])]}
    assert not planned_changes(plan, Redactor()).resources


def test_attributes_of_change() -> None:
    shown = attributes(
        before={"image": "a:1", "cpu": 2, "env": ["A=1"], "same": 1, "id": "i-1"},
        after={"image": "a:2", "cpu": 4, "env": ["A=2"], "same": 1},
        after_unknown={"id": True},
        replace_paths=[["image"], ["env", 0]],
    )
    assert shown == {
        "env": ("", "", True),
        "image": ('"a:1"', '"a:2"', True),
        "cpu": ("2", "4", False),
        "id": ('"i-1"', UNKNOWN, False),
    }


@pytest.mark.parametrize("mark", [{"password": True}, True])
def test_sensitive_values_are_masked(mark: Any) -> None:
    shown = attributes(
        before={"password": "old-one"}, after={"password": "new-one"}, before_sensitive=mark, after_sensitive=mark
    )
    assert shown == {"password": (REPLACEMENT, REPLACEMENT, False)}


@pytest.mark.parametrize("marks", [({"pin": True}, {}), ({}, {"pin": True}), (False, {"pin": [False, True]})])
def test_mark_on_either_side_hides_both(marks: tuple[Any, Any]) -> None:
    """A version that marks a variable sensitive must not show the value that the earlier one did not mark."""
    shown = attributes(
        before={"pin": "4711"}, after={"pin": "4712"}, before_sensitive=marks[0], after_sensitive=marks[1]
    )
    assert shown == {"pin": (REPLACEMENT, REPLACEMENT, False)}


def test_known_secrets_are_masked() -> None:
    """Terraform does not mark every secret: a session token is an ordinary attribute to it."""
    state = {
        "resources": [
            {"type": "coder_workspace_owner", "instances": [{"attributes": {"session_token": TOKEN, "name": "ada"}}]},
            {
                "type": "cloud_key",
                "instances": [
                    {
                        "attributes": {"material": {"pem": "secret-pem-text"}, "label": "public-label"},
                        "sensitive_attributes": [[{"type": "get_attr", "value": "material"}]],
                    }
                ],
            },
        ]
    }
    secrets = Redactor(state_secrets(json.dumps(state).encode()))
    shown = attributes(
        secrets,
        before={"command": f"login {TOKEN}", "pem": "secret-pem-text", "label": "public-label"},
        after={"command": "login", "pem": "", "label": "other"},
    )
    assert shown["command"][0] == REPLACEMENT
    assert shown["pem"][0] == REPLACEMENT
    assert shown["label"] == ('"public-label"', '"other"', False)


@pytest.mark.parametrize("state", [b"", b"{", b"[]", b'{"resources": [1, {"instances": [null]}]}'])
def test_odd_states_have_no_secrets(state: bytes) -> None:
    assert list(state_secrets(state)) == []


def test_large_plans_are_cut() -> None:
    wide = {f"a{number:03}": "x" * 1000 for number in range(MAX_ATTRIBUTES + 1)}
    plan = {
        "resource_changes": [change(["update"], name=str(number), before=wide) for number in range(MAX_RESOURCES + 2)]
    }
    planned = planned_changes(plan, Redactor())
    assert (len(planned.resources), planned.omitted) == (MAX_RESOURCES, 2)
    assert len(planned.resources[0].attributes) == MAX_ATTRIBUTES
    assert {item.before for item in planned.resources[0].attributes} == {""}
