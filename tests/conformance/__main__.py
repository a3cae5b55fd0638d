"""Measure the coverage of the public API. `scripts/conformance --help` lists the options.

Exits with code 1 when any figure is worse than in tests/data/api/conformance_baseline.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import trio

from tests.conformance.matrix import Matrix, check_matrix
from tests.conformance.recorded import replay_areas
from tests.conformance.scope import API
from tests.conformance.success import Outcome
from tests.conformance.walk import walk
from tests.conformance.world import equipped, populated
from tests.kit.recordings.exchange_replay import OURS, Recordings, Report

BASELINE = API / "conformance_baseline.json"
EXPERIMENTS = ("oauth2", "workspace-build-updates")
"""Experiments enabled during the walk, so that their operations are included."""
PARTS = ("operations", "permissions", "recorded")


def main() -> int:
    arguments = _arguments()
    warnings.simplefilter("ignore")  # from clients that leave streams early
    logging.disable(logging.ERROR)
    return trio.run(_run, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/conformance", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this part only (repeatable)")
    parser.add_argument("--area", action="append", help="replay this area only (repeatable)")
    parser.add_argument("--folder", type=Path, help="replay the recordings of this folder (AREA.jsonl, areas.json)")
    within = "the folder's lines fit between ours by their numbers and are counted alone"
    parser.add_argument("--within", action="store_true", help=within)
    parser.add_argument("--verbose", action="store_true", help="also list successful operations")
    parser.add_argument("--update-baseline", action="store_true", help="write what was measured as the new baseline")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> int:
    parts = arguments.only or (("recorded",) if arguments.folder else PARTS)
    totals: dict[str, Any] = {}
    say = (lambda *texts: print(*texts, file=sys.stderr)) if arguments.json else print
    if "permissions" in parts:
        async with populated() as world:  # recorded without experiments
            matrix = await check_matrix(world)
        _show_matrix(matrix, say)
        totals["permissions"] = {"cells": matrix.cells, "matched": matrix.cells - len(matrix.wrong)}
    if "operations" in parts:
        async with equipped(experiments=EXPERIMENTS) as world:
            outcomes = await walk(world)
        _show_walk(outcomes, say, arguments.verbose)
        totals |= _walk_totals(outcomes)
    if "recorded" in parts:
        with tempfile.TemporaryDirectory() as folder:
            recordings = Recordings(arguments.folder, arguments.within) if arguments.folder else OURS
            reports = await replay_areas(arguments.area or recordings.areas(), Path(folder), recordings)
        for report in reports:
            say("\n".join(report.lines() if arguments.verbose or arguments.folder else report.lines()[:1]))
        totals["recorded"] = _replay_totals(reports)
    if arguments.json:
        print(json.dumps(totals))
    else:
        print(json.dumps(totals, indent=1))
    if arguments.folder:
        result = totals["recorded"]
        return int(result["matched"] + result["excused"] < result["exchanges"])
    if arguments.update_baseline:
        kept = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
        BASELINE.write_text(json.dumps({**kept, **totals}, indent=1, sort_keys=True) + "\n")
        return 0
    worse = regressions(totals)
    for text in worse:
        print(f"worse than the baseline: {text}", file=sys.stderr)
    return 1 if worse else 0


def regressions(totals: dict[str, Any]) -> list[str]:
    """Return the figures below the committed baseline, without parts that were not measured."""
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    result = []
    for name, value in totals.items():
        before = baseline.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            size = "exchanges" if "exchanges" in value else "cells"
            if before[size] == value[size] and value["matched"] < before["matched"]:
                result.append(f"{name}: {before['matched']} matched, now {value['matched']}")
        elif isinstance(before, int) and name not in {"in_scope", "streams_only_opened"} and value < before:
            result.append(f"{name}: {before}, now {value}")
    return result


def _replay_totals(reports: list[Report]) -> dict[str, int]:
    exchanges = sum(report.total for report in reports)
    return {
        "exchanges": exchanges,
        "matched": sum(report.matched for report in reports),
        "excused": sum(len(report.excused) for report in reports),
        "status_matched": exchanges - sum(len(report.wrong_status) for report in reports),
    }


def _walk_totals(outcomes: list[Outcome]) -> dict[str, int]:
    return {
        "in_scope": len(outcomes),
        "implemented": sum(item.implemented for item in outcomes),
        "succeeded": sum(item.succeeded for item in outcomes),
        "bodies_checked": sum(item.succeeded and item.checked for item in outcomes),
        "streams_only_opened": sum(item.opened for item in outcomes),
        "valid": sum(item.valid for item in outcomes),
    }


def _show_walk(outcomes: list[Outcome], say: Any, verbose: bool) -> None:
    for item in outcomes:
        if verbose or not item.valid:
            say(f"{item.mark():8} {item.operation.name}  {item.why()}")


def _show_matrix(matrix: Matrix, say: Any) -> None:
    for text in matrix.wrong:
        say(text)


if __name__ == "__main__":
    sys.exit(main())
