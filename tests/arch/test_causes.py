"""Chains of exceptions: one function walks them, and no exception that exists already gets another cause.

`raise error from error` makes an exception its own cause, and a loop that follows `__cause__` until None never ends on
it: an agent that met one took a whole core and no signal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.arch.test_house import ROOT, SOURCES

WALKER = "coder/base/errors.py"
LINKS = {"__cause__", "__context__"}


def walks(tree: ast.Module) -> Iterator[int]:
    """Lines that follow the link of an exception in a loop, or in a function that calls itself."""
    for node in ast.walk(tree):
        is_loop = isinstance(node, ast.While | ast.For | ast.AsyncFor)
        if is_loop or (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _calls(node, node.name)):
            yield from (
                part.lineno for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr in LINKS
            )


def _calls(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(func, ast.Name) and func.id == name for func in called)


def new_causes(tree: ast.Module) -> Iterator[int]:
    """Lines that raise an exception which may be its own cause: one chosen from several, or named on both sides."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None and node.cause is not None:
            is_chosen = isinstance(node.exc, ast.IfExp | ast.BoolOp)
            is_same = ast.unparse(node.cause) == ast.unparse(node.exc)
            is_none = isinstance(node.cause, ast.Constant) and node.cause.value is None
            if (is_chosen or is_same) and not is_none:
                yield node.lineno


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("while error:\n    error = error.__cause__", True),
        ("while error:\n    error = error.__cause__ or error.__context__", True),
        ("def last(error):\n    return last(error.__cause__) if error.__cause__ else error", True),
        ("for _ in range(9):\n    error = error.__context__", True),
        ("if isinstance(error.__cause__, ValueError): pass", False),
        ("def first(error):\n    return error.__cause__", False),
    ],
)
def test_cause_walk_is_recognized(source: str, found: bool) -> None:
    assert bool(list(walks(ast.parse(source)))) is found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("raise error from error", True),
        ("raise (one if mine else two) from two", True),
        ("raise (first(error) or plain) from error", True),
        ("raise CoderError('x', error) from error", False),
        ("raise refusal from error", False),
        ("raise error from error.__cause__", False),
        ("raise error from None", False),
        ("raise", False),
    ],
)
def test_self_caused_exception_is_recognized(source: str, found: bool) -> None:
    assert bool(list(new_causes(ast.parse(source)))) is found


def test_causes_are_walked_once() -> None:
    parsed = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in SOURCES}
    assert {name: lines for name, tree in parsed.items() if (lines := list(walks(tree)))}.keys() == {WALKER}


def test_exceptions_never_cause_themselves() -> None:
    parsed = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in SOURCES}
    assert {name: lines for name, tree in parsed.items() if (lines := list(new_causes(tree)))} == {}
