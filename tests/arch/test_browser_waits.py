"""Browser tests do not fail because a machine is busy: they wait for what they expect, never for a guessed time.

A click is answered some time later, and pages may show its effect before. So the next line is an expectation or a wait
for the answer; it does not load a page, call the server or read the page.
"""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    """Return the lines that read at once what the click in the line before will change."""
    found = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for one, after in itertools.pairwise(body if isinstance(body, list) else []):
            outermost = one.value.func if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) else None
            if isinstance(outermost, ast.Attribute) and outermost.attr in CLICKS and called(after) & LOOKS:
                found.append(after.lineno)
    return found


def browser_tests() -> list[Path]:
    return [path for path in sorted((ROOT / "tests/system").glob("*.py")) if "playwright.sync_api" in path.read_text()]


@pytest.mark.parametrize(
    ("after", "allowed"),
    [
        ('expect(page.get_by_text("Saved")).to_be_visible()', True),
        ('expect_message(page, "Saved")', True),
        ("button.click()", True),
        ("page.reload()", False),
        ('page.goto("/")', False),
        ('assert api(server, "GET", "/users/me")["name"] == "ana"', False),
        ("assert box.inner_text()", False),
    ],
)
def test_read_after_click_is_found(after: str, allowed: bool) -> None:
    assert (hurried(ast.parse(f"def test() -> None:\n    button.click()\n    {after}\n")) == []) is allowed


def test_tests_wait_after_click() -> None:
    found = {path.name: hurried(ast.parse(path.read_text())) for path in browser_tests()}
    assert len(found) > 5
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_tests_do_not_guess_time() -> None:
    assert [path.name for path in browser_tests() if GUESSES.search(path.read_text())] == []


def test_kit_opens_every_browser() -> None:
    """Its pages have the timeouts of slow machines and track their open requests."""
    assert [path.name for path in browser_tests() if "new_context(" in path.read_text()] == []
