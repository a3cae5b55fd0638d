"""Searches whose text may hold LIKE's wildcards: each list bounds it, also where the text has no key."""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

import coder
from coder.api.base.refusals import Invalid
from coder.coderd.http.people.user_search import search_filter
from coder.coderd.http.templates.templates import _filter as template_filter
from coder.coderd.services.foundation.context import Context
from coder.coderd.services.workspaces.workspace_search import read_search
from coder.domain.access.policy import Subject

CONTEXT = cast("Context", None)
"""These searches look up no names."""
CALLER = cast("Subject", type("Caller", (), {"user_id": UUID(int=1)})())


async def _users(query: str) -> object:
    return search_filter(query)


READERS: dict[str, tuple[Callable[[str], Awaitable[Any]], tuple[str, ...]]] = {
    "users": (_users, ("search:", "name:", "")),
    "templates": (lambda query: template_filter(CONTEXT, CALLER, query), ("name:", "display_name:", "")),
    "workspaces": (lambda query: read_search(CONTEXT, CALLER, query), ("name:", "param:", "owner/", "")),
}


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, (_, keys) in READERS.items() for key in keys])
async def test_pattern_is_bounded(kind: str, key: str) -> None:
    reader, _ = READERS[kind]
    await reader(key + "%" * 256)
    with pytest.raises(Invalid) as refused:
        await reader(key + "%" * 257)
    assert "must not be longer than 256 characters" in str(refused.value.validations)


COMPARED = {
    ("people/users.py", "which.search"),
    ("people/users.py", "which.name"),
    ("templates/templates.py", "which.name"),
    ("templates/templates.py", "which.display_name"),
    ("workspaces/workspace_search.py", "which.name"),
    ("workspaces/workspace_search.py", "key"),  # of `param:`
}
"""Texts of users that the store compares with LIKE. A new one needs `Terms.pattern` and a key in READERS."""


def test_every_pattern_is_known() -> None:
    store = Path(coder.__file__).parent / "coderd/store"
    calls = [
        (path.relative_to(store).as_posix(), node, ast.unparse(node.func).rpartition(".")[2])
        for path in store.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]
    helpers = {"holds_text", "matches_text"}
    assert {(file, ast.unparse(node.args[1])) for file, node, name in calls if name in helpers} == COMPARED
    patterns = {"like", "ilike", "icontains", "regexp_match"}
    assert {file for file, _, name in calls if name in patterns} <= {"engine/names.py", "access/keys.py"}
