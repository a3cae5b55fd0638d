"""Bounds of tests with real programs are against hanging: a minute or more, so that none says how fast a machine is.

How soon something happens is asked of simulated clocks, or by what it was noticed; what is asserted in seconds belongs
to `scripts/bench`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("tests/system", "tests/interop")
MINUTE = 60
NAMES = {"timeout", "seconds", "limit", "patience"}
CALLS = {"fail_after", "wait", "communicate", "settimeout", "wait_agent", "wait_for"}
KEPT = {
    ("test_wireguard_clients.py", "ping"): "asks who must not answer, or is asked again until nobody does",
}


def short(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and what is called there, or defined, with so many seconds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [word.value for word in node.keywords if word.arg in NAMES]
            given += node.args if name in CALLS else []
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name, all_of_them = node.name, node.args
            usual = zip(reversed(all_of_them.args), reversed(all_of_them.defaults), strict=False)
            given = [value for word, value in usual if word.arg in NAMES]
            named = zip(all_of_them.kwonlyargs, all_of_them.kw_defaults, strict=True)
            given += [value for word, value in named if word.arg in NAMES and value is not None]
        else:
            continue
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, int | float) and 0 < value.value < MINUTE:
                yield node.lineno, name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("run(command, timeout=5)", True),
        ("trio.fail_after(10)", True),
        ("process.wait(30)", True),
        ("def look(seconds: float = 20.0): ...", True),
        ("def look(*, limit: int = 20): ...", True),
        ("run(command, timeout=60)", False),
        ("process.wait(PATIENCE)", False),
        ("poll(timeout=0)", False),
        ("sleep(3)", False),
    ],
)
def test_a_short_bound_is_found(source: str, found: bool) -> None:
    assert bool(list(short(ast.parse(source)))) is found


def test_bounds_are_against_hanging() -> None:
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if "node_modules" not in path.parts]
    found = {(path.name, name): line for path in files for line, name in short(ast.parse(path.read_text()))}
    assert {place: line for place, line in found.items() if place not in KEPT} == {}
    assert KEPT.keys() <= found.keys(), "reasons for bounds that are gone"
