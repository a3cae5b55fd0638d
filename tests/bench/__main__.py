"""The runner behind scripts/bench: progress on stderr, a table or one JSON object on stdout.

The exit status is 1 if a row failed, and 0 if rows are missing because the machine cannot measure them.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench import _full
from tests.bench._against import compare
from tests.bench._failures import failed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COLUMNS = ("metric", "value", "unit", "peer", "peer_value", "ratio", "target", "met")
OLD_COLUMNS = ("metric", "old_value", "value", "unit", "ratio_to_old", "old_ratio", "ratio", "target")


def names() -> list[str]:
    return sorted(
        path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_") and "def measure(" in path.read_text()
    )


def listing() -> str:
    """Every benchmark with what it answers, and the name of every row it may give."""
    parts = []
    for name in names():
        question, *_ = (ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or "").split("\n\n")
        question = question.replace("\n", " ").split(". ")[0].rstrip(".") + "."
        parts += [f"{name}: {question}", *(f"    {metric}" for metric in metrics(name))]
    return "\n".join(parts)


def metrics(name: str) -> list[str]:
    """Names of a benchmark's rows as its source has them, in its order; `{…}` stands for what a run fills in."""
    tree = ast.parse((HERE / f"{name}.py").read_text())
    found: dict[str, None] = {}
    for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)):
        for given in _named(node):
            text = _text(given)
            if text.strip("{…}") not in ("", "tunnel: "):
                found[text] = None
    return list(found)


def _named(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that name a row: the first argument of `row(…)`, the value of `"metric"`."""
    if isinstance(node, ast.Call) and _called(node.func) in {"row", "_row", "add", "_add"} and node.args:
        yield node.args[0]
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "metric")


def _called(func: ast.expr) -> str:
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def _text(given: ast.expr) -> str:
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return given.value
    if isinstance(given, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "{…}" for part in given.values)
    if isinstance(given, ast.BinOp):
        return _text(given.left) + _text(given.right)
    return "{…}"


def machine() -> dict[str, Any]:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def row_of(raw: Any) -> dict[str, Any]:
    """A complete row: peer fields null where there is none, `met` from value and target."""
    row = {"better": "lower", "peer": None, "peer_value": None, "ratio": None, "target": None, "met": None, **raw}
    if row["met"] is None and isinstance(row["target"], int | float) and isinstance(row["value"], int | float):
        lower = row["better"] == "lower"
        row["met"] = row["value"] <= row["target"] if lower else row["value"] >= row["target"]
    if row["ratio"] is None and row["peer_value"]:
        row["ratio"] = round(row["value"] / row["peer_value"], 3)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("name", nargs="?", choices=names())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="at most a minute")
    parser.add_argument("--against", metavar="COMMIT", help="measure this commit, too, in turns")
    parser.add_argument("--list", action="store_true", help="what there is, and the rows of each")
    _add_full(parser.add_argument_group("the full form of scale"))
    args = parser.parse_args()
    if args.list or not args.name:
        print(listing())
        return 0
    if args.full and (args.name != "scale" or args.against):
        parser.error("--full is a form of scale, and measures one commit")
    if args.full:
        report = _report(args.name, _full.measure(_full_options(parser, args)))
    elif args.against:
        report = compare(ROOT, args.name, args.against, quick=args.quick)
    else:
        report = measured(args.name, quick=args.quick)
    status = 1 if failed(report["skipped"]) else 0
    if args.json:
        print(json.dumps(report, indent=2))
        return status
    columns = OLD_COLUMNS if args.against else COLUMNS
    for row in report["rows"]:
        print("  ".join(f"{column}={row[column]}" for column in columns if row.get(column) is not None))
    for metric, reason in report["skipped"].items():
        print(f"skipped {metric}: {reason}")
    return status


def _add_full(group: Any) -> None:
    """Declare `--full` and its options."""
    default = _full.Options()
    group.add_argument("--full", action="store_true", help="measure the targets once and whole, about 50 minutes")
    group.add_argument("--part", default="", metavar="NAME,…", help=f"only these of {', '.join(_full.PARTS)}")
    helps = {
        "scale": "factor of every count and duration, for a trial in small",
        "steady": "minutes that the agents stay connected",
        "agents": "number of agents; 0 searches the largest that holds",
        "sessions": "sessions during the replacements",
        "replacements": "replacements of all processes",
        "upgrade_minutes": "minutes of the replacements",
        "ssh_minutes": "minutes of SSH sessions",
        "processes": "processes of the servers that accept connections",
    }
    for name, text in helps.items():
        value = getattr(default, name)
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(flag, type=type(value), default=value, help=f"{text} (default {value:g})")


def _full_options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> _full.Options:
    parts = tuple(name for name in args.part.split(",") if name)
    if unknown := [name for name in parts if name not in _full.PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    names = [field.name for field in dataclasses.fields(_full.Options) if field.name != "parts"]
    return _full.Options(parts, **{name: getattr(args, name) for name in names})


def measured(name: str, *, quick: bool) -> dict[str, Any]:
    """Run a benchmark of this commit; return its report."""
    return _report(name, importlib.import_module(f"tests.bench.{name}").measure(quick=quick))


def _report(name: str, found: Any) -> dict[str, Any]:
    rows, skipped = found if isinstance(found, tuple) else (found, {})
    return {
        "bench": name,
        "commit": commit(),
        "machine": machine(),
        "rows": [row_of(row) for row in rows],
        "skipped": skipped,
    }


if __name__ == "__main__":
    sys.exit(main())
