"""A benchmark of two commits that take turns: `scripts/bench NAME --against COMMIT`.

Each commit runs from its own checkout with its own environment, so that neither can use the other's modules. Machines
change within minutes; only runs that took turns can be compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = 2
OLD_BINARY = "CODER_BENCH_OLD_BINARY"
"""Environment variable with a binary of the older commit, for benchmarks that measure one; otherwise it is built."""

_BINARIES = ("CODER_BENCH_BINARY", "CODER_TEST_BINARY")
"""Environment variables with the binary to measure; each benchmark reads one of them."""


@contextmanager
def checkout(root: Path, commit: str) -> Iterator[Path]:
    """Check a commit out beside the repository. Raises subprocess.CalledProcessError for an unknown commit."""
    with tempfile.TemporaryDirectory(prefix="coder-bench-") as folder:
        place = Path(folder, "old")
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(place), commit], cwd=root, check=True)
        try:
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=root, check=False)


def run_in(place: Path, name: str, *, quick: bool, binary: str | None) -> dict[str, Any]:
    """Run a benchmark of a checkout; return its report. Raises SystemExit without one."""
    env = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    for variable in _BINARIES:
        env.pop(variable, None)
        if binary:
            env[variable] = binary
    command = ["./scripts/bench", name, "--json", *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=place, env=env, stdout=subprocess.PIPE, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"bench {name} in {place} printed no report (exit status {done.returncode})") from None
    return report


def joined(olds: Iterable[dict[str, Any]], news: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newer commit's rows with medians of both commits, and `ratio_to_old` where both have the metric."""
    old, new = _values(olds), _values(news)
    rows = []
    for metric, found in new.items():
        row = {**found["row"], "value": median(found["values"]), "runs": len(found["values"])}
        if found["ratios"]:
            row["ratio"] = median(found["ratios"])
        if metric in old:
            row["old_value"] = median(old[metric]["values"])
            row["ratio_to_old"] = round(row["value"] / row["old_value"], 3) if row["old_value"] else None
            if old[metric]["ratios"]:
                row["old_ratio"] = median(old[metric]["ratios"])
        rows.append(row)
    return rows


def _values(reports: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for report in reports:
        for row in report["rows"]:
            if isinstance(row["value"], int | float) and not isinstance(row["value"], bool):
                entry = found.setdefault(row["metric"], {"row": row, "values": [], "ratios": []})
                entry["values"].append(row["value"])
                entry["ratios"] += [row["ratio"]] if row["ratio"] is not None else []
    return found


def compare(root: Path, name: str, commit: str, *, quick: bool, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return the report of a benchmark with both commits in turn."""
    olds, news = [], []
    with checkout(root, commit) as place:
        for turn in range(rounds):
            print(f"round {turn + 1} of {rounds}: {commit}, then this commit", file=sys.stderr)
            olds.append(run_in(place, name, quick=quick, binary=os.environ.get(OLD_BINARY)))
            news.append(run_in(root, name, quick=quick, binary=os.environ.get("CODER_BENCH_BINARY")))
    skipped = {key: reason for report in (*olds, *news) for key, reason in report["skipped"].items()}
    last = news[-1]
    return {**last, "old_commit": olds[-1]["commit"], "rows": joined(olds, news), "skipped": skipped}
