"""Rows of the names that other programs look for in the dashboard, and which tests walk them.

`docs/guides/dashboard-names.md` is the one list: a page and its names in a row. A browser test states its rows with
`walks`, and `tests/arch/test_dashboard_name_rows.py` compares both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TypeVar

from tests.kit.server.server_process import ROOT

_Test = TypeVar("_Test", bound=Callable[..., object])
PAGE = ROOT / "docs/guides/dashboard-names.md"
FILES = tuple(ROOT / "tests/system" / f"test_dashboard_{part}.py" for part in ("names", "flows"))
_KEPT = re.compile(r"^\| page \| names that are kept \|\n\| --- \| --- \|\n((?:\|.*\n)+)", re.MULTILINE)


def walks(*rows: str) -> Callable[[_Test], _Test]:
    """Mark a test with the rows that it walks; return the test itself."""
    assert rows

    def same(test: _Test) -> _Test:
        return test

    return same


def documented_rows() -> list[str]:
    """Return the first cells of the table of kept names."""
    table = _KEPT.search(PAGE.read_text())
    assert table is not None, PAGE
    return [line.split("|")[1].strip() for line in table[1].splitlines()]


def walked_rows() -> dict[str, list[str]]:
    """Return the names of the tests of each row."""
    found: dict[str, list[str]] = {}
    for path in FILES:
        tests = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        for test in tests:
            for row in _marked(test):
                found.setdefault(row, []).append(test.name)
    return found


def _marked(test: ast.FunctionDef) -> list[str]:
    return [
        str(argument.value)
        for call in test.decorator_list
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "walks"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]
