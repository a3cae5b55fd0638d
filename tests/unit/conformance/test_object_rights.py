"""Rights of operations: the page, the recorded questions and the map of the original's statements agree."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import coder
from coder.domain.access.resources import ACTIONS
from coder.domain.access.route_scopes import Unscoped
from tests.conformance.object_rights import (
    PAGE,
    VERDICTS,
    WITHOUT_QUESTION,
    Statement,
    recorded_checks,
    render,
    routes,
    statements,
)
from tests.conformance.permission_checks import Checks

_SERVER = Path(coder.__file__).parent / "coderd"
_STATEMENTS = 557
"""Statements of the original's database layer."""
_PROVEN = frozenset({Unscoped.ANY_KEY, Unscoped.OPTIONAL})
_SPELLED = {
    "readpersonal": "read_personal",
    "updatepersonal": "update_personal",
    "viewinsights": "view_insights",
}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
UNREACHED = {
    "services.people.organizations:_delete": "no call of the recording deletes an organization with contents",
    "services.people.user_changes:set_roles": "no call of the recording takes a role away",
    "services.workspaces.workspace_schedule:_extend": "the workspaces of the recording stop by hand",
    "services.workspaces.workspace_updates:serve_workspace_updates": "the recording calls no RPC",
}
"""Functions whose question the recording does not reach. Their source must contain the action."""


def _find(function: str) -> ast.AST | None:
    """Return the definition of `module:name` or `module:Class.name`."""
    module, _, name = function.partition(":")
    body: list[ast.stmt] = _module(module).body
    definition: ast.AST | None = None
    for part in name.split("."):
        definition = next((item for item in body if isinstance(item, _DEFINITIONS) and item.name == part), None)
        if definition is None:
            return None
        body = definition.body
    return definition


@cache
def _module(name: str) -> ast.Module:
    path = _SERVER / (name.replace(".", "/") + ".py")
    return ast.parse(path.read_text() if path.exists() else "")


def test_every_statement_is_mapped() -> None:
    names = [item.name for item in statements()]
    assert len(set(names)) == len(names) == _STATEMENTS


def test_statements_have_verdicts_and_reasons() -> None:
    assert not [item for item in statements() if not _is_complete(item)]


def _is_complete(item: Statement) -> bool:
    """Return whether the fields of a statement fit its verdict."""
    asks = [name.rstrip("*").partition(":") for name in item.asks]
    return (
        item.verdict in VERDICTS
        and bool(item.asks or item.reason or item.verdict == "same")
        and bool(item.reason or item.verdict in {"same", "stricter"})
        and bool(item.functions) == (item.verdict != "absent")
        and (not item.asks or item.verdict in {"same", "stricter", "different"})
        and all(action in ACTIONS[kind] for kind, _, action in asks)
    )


def _required_actions(original: str) -> set[str]:
    """Return the actions that the original asks, in our spelling."""
    found = re.findall(r"\b(\w+) on (?!System)", original) + re.findall(r"filtered (?:in SQL )?by (\w+)", original)
    return {_SPELLED.get(action, action) for action in found}


def test_same_verdict_asks_same_actions() -> None:
    less = [
        f"{item.name}: {item.original}, not {' '.join(item.asks)}"
        for item in statements()
        if item.verdict in {"same", "stricter"}
        if not _required_actions(item.original) <= {name.rstrip("*").partition(":")[2] for name in item.asks}
    ]
    assert not less, "\n".join(less)


def test_mapped_functions_exist() -> None:
    named = {function for item in statements() for function in item.functions} | UNREACHED.keys()
    assert not sorted(function for function in named if _find(function) is None)


def _wrong_claims(checks: Checks) -> list[str]:
    """Return the claims of the map that no call of the recording confirms."""
    wrong = []
    for item in statements():
        heard = {
            check.name + "*" * (check.form == "class")
            for function in item.functions
            for check in checks.by_function.get(function, ())
        }
        unreached = [ast.dump(found) for found in map(_find, UNREACHED.keys() & {*item.functions}) if found]
        wrong += [
            f"{item.name}: {' '.join(item.functions)} does not ask {name}, but {sorted(heard)}"
            for name in item.asks
            if name not in heard and not any(repr(name.rstrip("*").partition(":")[2]) in source for source in unreached)
        ]
    return wrong


def _unexplained(checks: Checks) -> set[str]:
    """Return operations with a key that ask nothing without a reason, and reasons of operations that ask."""
    silent = {
        name
        for name, route in routes()
        if name not in checks.by_operation and (not isinstance(route.scope, Unscoped) or route.scope in _PROVEN)
    }
    return silent ^ WITHOUT_QUESTION.keys()


async def test_recorded_questions_match_page() -> None:
    checks = await recorded_checks()
    assert not _wrong_claims(checks), "\n".join(_wrong_claims(checks))
    assert not _unexplained(checks), "\n".join(sorted(_unexplained(checks)))
    assert render(checks) == PAGE.read_text(), "run scripts/generate-object-rights and read the difference"
