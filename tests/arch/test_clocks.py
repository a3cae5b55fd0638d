"""Whose time it is: the server asks its clock alone, and a test gives no date of its own to one of the system's clock.

A bound in a test is against hanging and says nothing about speed: a minute, unless the clock jumps.

A date that is written down is yesterday's for ever: what a server by the system's clock does with it changes with the
day the suite runs on. Such a test gives its server a clock, or counts from now.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OTHER_CLOCKS = re.compile(
    r"\bfunc\.(now|current_\w+|clock_timestamp)\b|\bdatetime\.(utc)?now\(|\btime\.time\(\)|\.today\("
)
"""Of the process, and of the database, which may be another machine's."""
THEIR_OWN = {"coder/coderd/services/events/process_metrics.py": "when the process began, for the metric of that name"}
OPENS_SERVER = re.compile(r"^(running_coderd|\w*world|world_\w+|deployment|agent_world)$")
A_DATE = re.compile(r"20(2[1-9]|[34]\d)-[01]\d-[0-3]\d")
"""2020 is long ago, 2100 far away, whenever that is read."""


def test_the_server_asks_its_clock() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("coderd", "domain", "wsproxy")
        for path in (ROOT / "coder" / room).rglob("*.py")
        if "migrations" not in path.parts and OTHER_CLOCKS.search(path.read_text())
    }
    assert found == set(THEIR_OWN)


def is_fixed(node: ast.expr) -> bool:
    """`datetime(2026, 1, 1)`, with whatever is added to it, or the text of one."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("datetime") and part.args:
            year = part.args[0]
            if isinstance(year, ast.Constant) and year.value in range(2021, 2050):
                return True
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and A_DATE.match(part.value):
            return True
    return False


def dated(text: str) -> Iterator[str]:
    """Functions that open a server without a clock and name a date."""
    tree = ast.parse(text)
    fixed = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and is_fixed(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        opens = [
            call
            for call in calls
            if isinstance(call.func, ast.Name) and OPENS_SERVER.match(call.func.id) and not _has_clock(call)
        ]
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if "'clock'" in ast.unparse(function):
            continue  # among settings that are written before
        if opens and (names & fixed or any(is_fixed(statement) for statement in _expressions(function))):
            yield function.name


def _has_clock(call: ast.Call) -> bool:
    given = [*call.args, *(word.value for word in call.keywords)]
    return any(word.arg == "clock" for word in call.keywords) or any("lock" in ast.unparse(value) for value in given)


def _expressions(function: ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    return (node for node in ast.walk(function) if isinstance(node, ast.expr))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("async def test():\n  async with running_coderd() as w:\n    at = datetime(2026, 1, 1)", ["test"]),
        ("NOW = datetime(2026, 1, 1)\nasync def test():\n  async with workspace_world() as w:\n    put(NOW)", ["test"]),
        ("async def test():\n  async with running_coderd() as w:\n    put('2026-01-01T00:00:00Z')", ["test"]),
        ("async def test():\n  async with running_coderd(clock=c) as w:\n    at = datetime(2026, 1, 1)", []),
        ("async def test():\n  async with running_coderd() as w:\n    at = datetime(2100, 1, 1)", []),
        ("async def test():\n  at = datetime(2026, 1, 1)", []),
    ],
)
def test_what_is_found(text: str, found: list[str]) -> None:
    assert list(dated(text)) == found


def test_no_date_is_given_to_a_server_by_the_systems_clock() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for room in ("unit", "recorded")
        for path in sorted((ROOT / "tests" / room).rglob("*.py"))
        for name in dated(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


LEAST_BOUND = 60


def short_bounds(text: str) -> Iterator[int]:
    """Lines with a bound that a slow machine passes. Helpers of a file in which clocks jump may be for those tests."""
    jumps = "autojump" in text or "MockClock" in text
    for function in ast.parse(text).body:
        if not isinstance(function, ast.AsyncFunctionDef | ast.ClassDef) or "clock:" in ast.unparse(function):
            continue
        if jumps and not function.name.startswith("test_"):
            continue
        for call in ast.walk(function):
            if (
                isinstance(call, ast.Call)
                and ast.unparse(call.func) == "trio.fail_after"
                and isinstance(call.args[0], ast.Constant)
                and float(str(call.args[0].value)) < LEAST_BOUND
            ):
                yield call.lineno


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("async def test():\n  with trio.fail_after(5):\n    pass", [2]),
        ("async def test():\n  with trio.fail_after(60):\n    pass", []),
        ("async def test(autojump_clock: Any):\n  with trio.fail_after(5):\n    pass", []),
    ],
)
def test_which_bounds_are_short(text: str, found: list[int]) -> None:
    assert list(short_bounds(text)) == found


def test_bounds_are_against_hanging() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ("kit", "recorded", "unit")
        for path in sorted((ROOT / "tests" / room).rglob("*.py"))
        for line in short_bounds(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)
