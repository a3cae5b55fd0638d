"""What browser tests wait for, and how: they must not fail because a machine has something else to do.

What is waited for by `wait_for_function` is a function, or better a locator. An expression is asked again and again by
`eval`, which the pages' Content-Security-Policy forbids: the wait then fails for another reason than the one it was
written for. A function is handed over once.

A click is answered some time later, and pages may show it before. So what follows a click is an expectation or a wait
for the answer; nothing is loaded, asked of the server or read from the page in the very next line.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTION = re.compile(r"\s*(?:async\s+)?(?:function\b|(?:\([^()]*\)|[\w$]+)\s*=>)")


@cache
def sources() -> tuple[Path, ...]:
    return tuple(path for room in ("tests", "scripts") for path in sorted((ROOT / room).rglob("*.py")))


def waits(tree: ast.Module) -> Iterator[tuple[int, str | None]]:
    """Line and text of each; None for what cannot be read where it stands."""
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "wait_for_function"
        ):
            given = [*node.args, *(word.value for word in node.keywords if word.arg == "expression")]
            value = given[0] if given else None
            yield node.lineno, beginning(named.get(value.id) if isinstance(value, ast.Name) else value)


def beginning(value: ast.expr | None) -> str | None:
    """The text of a string, of a composed one what stands before its first value."""
    if isinstance(value, ast.JoinedStr):
        value = value.values[0]
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def refused(text: str) -> list[int]:
    return [line for line, wait in waits(ast.parse(text)) if wait is None or not FUNCTION.match(wait)]


@pytest.mark.parametrize(
    ("argument", "allowed"),
    [
        ('"() => window.ready"', True),
        ("\"async () => (await fetch('/')).ok\"", True),
        ('"one => one.isConnected"', True),
        ('"function () { return true; }"', True),
        ('f"() => ({measure})() <= 0"', True),
        ("KNOWN", True),
        ('"window.ready"', False),
        ("\"document.fonts.status === 'loaded'\"", False),
        ('f"{measure}() <= 0"', False),
        ('expression="window.ready"', False),
        ("unknown", False),
    ],
)
def test_functions_are_told_from_expressions(argument: str, allowed: bool) -> None:
    text = f'KNOWN = """() => {{\n    return true;\n}}"""\npage.wait_for_function({argument}, timeout=1)\n'
    assert (refused(text) == []) is allowed


def test_every_wait_is_a_function() -> None:
    found = {path: refused(path.read_text()) for path in sources() if "wait_for_function" in path.read_text()}
    found.pop(Path(__file__))
    assert found, "nobody waits by function: this rule has nothing left to hold"
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}


CLICKS = {"click", "check", "uncheck", "fill", "press", "select_option", "set_checked"}
LOOKS = {
    "goto",
    "reload",
    "api",
    "call",
    "request",
    "coder",
    "close",
    "content",
    "evaluate",
    "inner_text",
    "text_content",
    "input_value",
    "get_attribute",
    "is_visible",
    "is_checked",
    "count",
    "all_inner_texts",
}
GUESSES = re.compile(r"networkidle|wait_for_timeout\(")
"""A quiet network may be a busy processor; a fixed time is too long here and too short there."""


def called(node: ast.AST) -> set[str]:
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls}


def hurried(tree: ast.Module) -> list[int]:
    """Lines that look at once at what the click in the line before will do."""
    found = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for one, after in itertools.pairwise(body if isinstance(body, list) else []):
            outermost = one.value.func if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) else None
            if isinstance(outermost, ast.Attribute) and outermost.attr in CLICKS and called(after) & LOOKS:
                found.append(after.lineno)
    return found


def browser_tests() -> list[Path]:
    return [path for path in sources() if path.parent.name == "system" and "playwright.sync_api" in path.read_text()]


@pytest.mark.parametrize(
    ("after", "allowed"),
    [
        ('expect(page.get_by_text("Saved")).to_be_visible()', True),
        ('told(page, "Saved")', True),
        ("button.click()", True),
        ("page.reload()", False),
        ('page.goto("/")', False),
        ('assert api(server, "GET", "/users/me")["name"] == "ana"', False),
        ("assert box.inner_text()", False),
    ],
)
def test_a_look_right_after_a_click_is_found(after: str, allowed: bool) -> None:
    assert (hurried(ast.parse(f"def test() -> None:\n    button.click()\n    {after}\n")) == []) is allowed


def test_nobody_looks_right_after_a_click() -> None:
    found = {path.name: hurried(ast.parse(path.read_text())) for path in browser_tests()}
    assert len(found) > 5
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_nobody_waits_for_a_guess() -> None:
    assert [path.name for path in browser_tests() if GUESSES.search(path.read_text())] == []


def test_browsers_are_opened_by_the_kit() -> None:
    """Its pages have the limits of slow machines, and know what they are still asking for."""
    assert [path.name for path in browser_tests() if "new_context(" in path.read_text()] == []
