"""The runner behind scripts/bench: progress on stderr, a table or one JSON object on stdout."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COLUMNS = ("metric", "value", "unit", "peer", "peer_value", "ratio", "target", "met")


def names() -> list[str]:
    return sorted(
        path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_") and "def measure(" in path.read_text()
    )


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
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list or not args.name:
        print("\n".join(names()))
        return 0
    found = importlib.import_module(f"tests.bench.{args.name}").measure(quick=args.quick)
    rows, skipped = found if isinstance(found, tuple) else (found, {})
    report = {
        "bench": args.name,
        "commit": commit(),
        "machine": machine(),
        "rows": [row_of(row) for row in rows],
        "skipped": skipped,
    }
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    for row in report["rows"]:
        print("  ".join(f"{column}={row[column]}" for column in COLUMNS if row[column] is not None))
    for metric, reason in skipped.items():
        print(f"skipped {metric}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
