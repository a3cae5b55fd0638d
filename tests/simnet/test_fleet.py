"""A simulated fleet keeps its claims whatever happens, and the claims notice defects (docs/reliability.md)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.kit.paths import ROOT

HANG = 600
"""Seconds; says nothing about speed."""


def live(seed: int, minutes: float, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.simnet.fleet", "--seed", str(seed), "--minutes", str(minutes), *words]
    result = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=HANG)
    assert result.stdout, result.stderr[-2000:]
    figures: dict[str, Any] = json.loads(result.stdout)
    assert result.returncode == bool(figures["broken"]), result.stderr[-2000:]
    return figures


def check(seed: int, minutes: float) -> None:
    figures = live(seed, minutes)
    command = f"python -m tests.simnet.fleet --seed {seed} --minutes {minutes} --trace"
    assert not figures["broken"], f"{figures['broken'][:5]}; repeat it by: {command}"
    assert figures["sessions"] and figures["bytes"]


def test_fleet_keeps_its_claims() -> None:
    check(seed=3, minutes=2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_fleets_keep_claims(seed: int) -> None:
    check(seed, minutes=10)


@pytest.mark.soak
def test_seed_repeats_exactly() -> None:
    assert live(5, 2)["digest"] == live(5, 2)["digest"] != live(6, 2)["digest"]


@pytest.mark.parametrize(
    ("defect", "seed", "minutes"),
    [
        ("revoke", 4, 1.5),
        pytest.param("bytes", 4, 1.5, marks=pytest.mark.soak),
        pytest.param("lost", 3, 5, marks=pytest.mark.soak),
    ],
)
def test_claims_notice_defect(defect: str, seed: int, minutes: float) -> None:
    assert live(seed, minutes, "--defect", defect)["broken"]
