"""Prebuild schedules: invalid lines, and overlapping pairs."""

from __future__ import annotations

import pytest

from coder.provisionerd.terraform.provider import cron


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("* 8-18 * * mon-fri", ""),
        ("* * * *", "cron spec failed validation: cron specification should consist of 5 fields"),
        ("0 8 * * *", "cron spec failed validation: minute field should be *"),
        ("* 24 * * *", "failed to parse cron spec: end of range (24) above maximum (23): 24"),
        ("* 8 * * 7", "failed to parse cron spec: end of range (7) above maximum (6): 7"),
    ],
)
def test_invalid_prebuild_schedules(spec: str, problem: str) -> None:
    assert cron.prebuild_cron_problem(spec) == problem


@pytest.mark.parametrize(
    ("left", "right", "meets"),
    [
        ("* 8-12 * * 1-5", "* 13-18 * * 1-5", False),
        ("* 8-12 * * 1-5", "* 12-18 * * 5-6", True),
        ("* 8-12 * 1 *", "* 8-12 * 2 *", False),
        ("* 8 1-15 * *", "* 8 16-31 * *", False),
        ("* 8 1-15 * *", "* 8 * * 1", True),
        ("* 8 1 * 1", "* 8 2 * 1", True),
        ("* * * * *", "* 3 * * *", True),
    ],
)
def test_overlap(left: str, right: str, meets: bool) -> None:
    assert cron.overlap(left, right) is meets
    assert cron.overlap(right, left) is meets
