"""`scripts/bench --list` says what each benchmark answers and names its rows in words."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import _workspace
from tests.bench.__main__ import listing, metrics, names


@pytest.mark.parametrize("name", names())
def test_benchmarks_have_question_and_rows(name: str) -> None:
    (head,) = [line for line in listing().splitlines() if line.startswith(f"{name}: ")]
    assert head.endswith(".") and len(head) > len(name) + 30
    assert metrics(name)


@pytest.mark.parametrize("name", names())
def test_row_names_are_words(name: str) -> None:
    """No identifiers, and more than one word: a reader of the table has nothing else."""
    for metric in metrics(name):
        assert " " in metric and not re.search(r"[a-z]_[a-z]", metric), metric


@pytest.mark.parametrize("name", names())
def test_each_can_be_quick(name: str) -> None:
    assert "quick" in inspect.signature(importlib.import_module(f"tests.bench.{name}").measure).parameters


def test_timing_waits_for_children_not_daemons() -> None:
    """OpenSSH does not wait for its ProxyCommand, and a command may start the server of commands."""
    (orphan_reads, orphan), (daemon_reads, daemon) = os.pipe(), os.pipe()
    script = f"cat /dev/fd/{orphan_reads} & setsid cat /dev/fd/{daemon_reads} & echo $!"
    with _workspace.adopted_orphans():
        with tempfile.TemporaryFile() as out:
            subprocess.run(["sh", "-c", script], pass_fds=(orphan_reads, daemon_reads), stdout=out, check=True)
            out.seek(0)
            number = int(out.read())
        assert _workspace._orphans(), "it still reads"
        os.close(orphan)
    assert not _workspace._orphans()
    os.kill(number, 0)  # goes on
    os.close(daemon)
    assert os.waitpid(number, 0) == (number, 0)
    for descriptor in (orphan_reads, daemon_reads):
        os.close(descriptor)


# Counts that only rise by what else runs at that moment; times have no such excuse.
LEAST_OF_COUNTS = {("api.py", "_statements")}


def best_of(tree: ast.Module) -> Iterator[str]:
    """Names of the functions that take the least of several measurements: `min(runs)`, `best = min(best, this)`."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "min":
                continue
            if len(node.args) == 1 or any(_is_kept(function, node, given) for given in node.args):
                yield function.name


def _is_kept(function: ast.AST, call: ast.Call, given: ast.expr) -> bool:
    """Whether the call's result goes back to one of its own arguments."""
    return any(
        isinstance(node, ast.Assign) and node.value is call and ast.unparse(node.targets[0]) == ast.unparse(given)
        for node in ast.walk(function)
    )


def test_rows_are_medians() -> None:
    """A best of five flatters: rows are medians."""
    found = set()
    for path in sorted(Path("tests/bench").glob("*.py")):
        found |= {(path.name, name) for name in best_of(ast.parse(path.read_text()))}
    assert found <= LEAST_OF_COUNTS


@pytest.mark.parametrize(
    ("source", "is_best"),
    [
        ("def f():\n    x = min(runs)", True),
        ("def f():\n    best[n] = min(best[n], now() - began)", True),
        ("def f():\n    return values[min(len(values) - 1, 3)]", False),
    ],
)
def test_best_of_pattern_is_recognized(source: str, is_best: bool) -> None:
    assert bool(list(best_of(ast.parse(source)))) is is_best
