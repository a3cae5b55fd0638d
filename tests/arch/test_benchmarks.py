"""`scripts/bench --list` says what each benchmark answers and names its rows in words."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import _workspace, mesh
from tests.bench.__main__ import listing, main, metrics, names
from tests.bench._against import joined
from tests.bench._failures import failed, reason
from tests.bench._wireguard_go import UnavailableError


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
    before = _workspace._orphans()
    with _workspace.adopted_orphans():
        with tempfile.TemporaryFile() as out:
            subprocess.run(["sh", "-c", script], pass_fds=(orphan_reads, daemon_reads), stdout=out, check=True)
            out.seek(0)
            number = int(out.read())
        assert _workspace._orphans() - before, "it still reads"
        os.close(orphan)
    assert not _workspace._orphans() - before
    os.kill(number, 0)  # goes on
    os.close(daemon)
    assert os.waitpid(number, 0) == (number, 0)
    for descriptor in (orphan_reads, daemon_reads):
        os.close(descriptor)


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("name", names())
def test_failed_row_fails_run(
    name: str, form: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench, row = importlib.import_module(f"tests.bench.{name}"), {"metric": "a row", "value": 1.0, "unit": "ms"}
    for skipped, status in (
        ({}, 0),
        ({"beside a peer": "it is not installed"}, 0),
        ({"beside a peer": "it is not installed", "a part": reason(RuntimeError("broken"))}, 1),
    ):
        monkeypatch.setattr(bench, "measure", lambda quick, found=([row], skipped): found)
        monkeypatch.setattr(sys, "argv", ["bench", name, *form])
        assert main() == status
        printed = capsys.readouterr().out
        assert "a row" in printed and all(part in printed for part in skipped)


def test_other_parts_follow_failed_one() -> None:
    def broken(_table: mesh.Table, _quick: bool) -> None:
        raise KeyError("no such field")

    def missing(_table: mesh.Table, _quick: bool) -> None:
        raise UnavailableError("needs root")

    table = mesh.Table()
    table.section("broken", broken, True)
    table.section("missing", missing, True)
    table.section("good", lambda there, _: there.add("a row", 1.0, "ms"), True)
    assert failed(table.skipped) == ["broken"] and table.skipped["missing"] == "needs root"
    assert [row["metric"] for row in table.rows] == ["a row"]


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


def test_commits_are_compared_by_medians() -> None:
    def report(value: float, ratio: float | None = None) -> dict[str, object]:
        return {
            "rows": [{"metric": "the time of it", "value": value, "ratio": ratio}, {"metric": "a text", "value": "x"}]
        }

    (row,) = joined([report(4), report(2)], [report(1, 0.5), report(2, 0.7)])
    assert (row["old_value"], row["value"], row["ratio_to_old"], row["ratio"], row["runs"]) == (3, 1.5, 0.5, 0.6, 2)
    assert joined([], [report(1)])[0].get("old_value") is None
