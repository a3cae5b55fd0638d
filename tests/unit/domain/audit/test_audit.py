"""Differences of two states, and their descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from coder.base.json_types import JsonObject
from coder.domain.audit.audit import ACTIONS, State, description, diff, resource_link


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"b": 1, "a": "x"}, {"b": 2, "a": "y"}, {"a": ("x", "y"), "b": (1, 2)}),
        (None, {"name": "n", "on": True, "n": 3, "no": False}, {"name": ("", "n"), "on": (False, True), "n": (0, 3)}),
        ({"name": "n", "list": ["x"]}, None, {"name": ("n", ""), "list": (["x"], ...)}),
        ({"at": None}, {"at": "now"}, {"at": (..., "now")}),
    ],
)
def test_only_changes_are_reported(
    before: State | None, after: State | None, expected: dict[str, tuple[Any, Any]]
) -> None:
    """`...` stands for a side that is left out, because the field has no empty value."""
    result = diff(before, after)
    assert list(result) == sorted(result)
    assert result == {
        name: {key: value for key, value in zip(("old", "new"), pair, strict=True) if value is not ...}
        | {"secret": False}
        for name, pair in expected.items()
    }


@pytest.mark.parametrize(
    ("before", "after"), [({"key": "a"}, {"key": "b"}), (None, {"key": "b"}), ({"key": "a"}, None)]
)
def test_secret_diff_hides_values(before: State | None, after: State | None) -> None:
    assert diff(before, after, secret={"key"}) == {"key": {"secret": True}}


@pytest.mark.parametrize(
    ("action", "kind", "status", "sentence"),
    [
        ("create", "workspace", 201, "{user} created workspace {target}"),
        ("write", "template", 400, "{user} unsuccessfully attempted to write template {target}"),
        ("login", "api_key", 201, "{user} logged in"),
        ("create", "api_key", 201, "{user} created token {target}"),
        ("write", "git_ssh_key", 200, "{user} updated the git ssh key"),
        ("request_password_reset", "user", 204, "password reset requested for {target}"),
        ("create", "convert_login", 201, "{user} created login type conversion to {target}"),
        ("start", "workspace_build", 200, "{user} started workspace {target}"),
    ],
)
def test_sentences(action: str, kind: str, status: int, sentence: str) -> None:
    assert description(action, kind, status) == sentence


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_past_tense(action: str) -> None:
    assert action not in description(action, "workspace", 200).split()


def test_links_lead_to_pages() -> None:
    build: JsonObject = {"workspace_owner": "ana", "workspace_name": "dev", "build_number": 3}
    assert resource_link("workspace_build", "dev", build, "id") == "/@ana/dev/builds/3"
    assert resource_link("workspace_build", "dev", {"workspace_owner": "ana"}, "id") == ""
    assert resource_link("workspace", "dev", {}, "id") == ""
    assert resource_link("user", "ana", {}, "id") == "/users?filter=ana"
    assert resource_link("license", "x", {}, "id") == ""
