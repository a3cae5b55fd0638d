"""Builds of a simulated fleet keep their claims whatever happens, and the claims notice defects."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import trio

from tests.kit.paths import ROOT
from tests.kit.server.postgres_server import fresh_database


async def live(seed: int, minutes: float, *words: str) -> dict[str, Any]:
    async with fresh_database() as url:
        command = [sys.executable, "-m", "tests.simnet.fleet_builds", "--seed", str(seed), "--minutes", str(minutes)]
        result = await trio.run_process(
            [*command, "--database", url, *words], check=False, cwd=ROOT, capture_stdout=True, capture_stderr=True
        )
    assert result.stdout, result.stderr[-2000:]
    figures: dict[str, Any] = json.loads(result.stdout)
    assert result.returncode == bool(figures["broken"]), result.stderr[-2000:]
    return figures


async def check(seed: int, minutes: float) -> None:
    figures = await live(seed, minutes)
    assert not figures["broken"], f"seed {seed}, {minutes} minutes: {figures['broken'][:5]}"
    assert figures["succeeded"] and figures["failed"]


async def test_builds_keep_their_claims() -> None:
    await check(seed=3, minutes=15)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200, 220))
async def test_many_seeds_keep_claims(seed: int) -> None:
    await check(seed, minutes=240)


@pytest.mark.soak
async def test_seed_repeats_exactly() -> None:
    first, second, other = [await live(seed, 30) for seed in (5, 5, 6)]
    assert first["digest"] == second["digest"] != other["digest"]


@pytest.mark.soak
@pytest.mark.parametrize("defect", ["reaper", "twice"])
async def test_claims_notice_defect(defect: str) -> None:
    assert (await live(4, 60, "--defect", defect))["broken"]
