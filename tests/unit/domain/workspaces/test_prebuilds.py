"""Desired number of prebuilt workspaces, and the plan to reach it."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from coder.domain.foundation.schedules import cron_matches
from coder.domain.workspaces.prebuilds import Failures, Plan, Prebuilt, desired_instances, plan

NOW = datetime.fromisoformat("2026-01-07T09:30:00+00:00")  # a Wednesday
OFFICE = [{"cron": "* 8-18 * * 1-5", "instances": 5}]


def prebuilt(number: int, **rest: Any) -> Prebuilt:
    values: dict[str, Any] = {"is_running": True, "is_busy": False, "has_failed": False, **rest}
    return Prebuilt(UUID(int=number), NOW - timedelta(hours=number), **values)


@pytest.mark.parametrize(
    ("base", "schedules", "zone", "now", "expected_number"),
    [
        (2, [], "", NOW, 2),
        (None, [], "", NOW, 0),
        (1, OFFICE, "UTC", NOW, 5),
        (1, OFFICE, "America/New_York", NOW, 1),  # 4:30 there
        (1, OFFICE, "Asia/Tokyo", NOW, 5),  # 18:30 there
        (1, OFFICE, "Nowhere/At_All", NOW, 5),
        (1, OFFICE, "UTC", NOW + timedelta(days=3), 1),  # Saturday
        (1, [{"cron": "what", "instances": 9}], "UTC", NOW, 1),
    ],
)
def test_desired(
    base: int | None, schedules: list[dict[str, Any]], zone: str, now: datetime, expected_number: int
) -> None:
    assert desired_instances(base, schedules, zone, now) == expected_number


@pytest.mark.parametrize(
    ("existing", "desired", "rest", "expected"),
    [
        ([], 2, {}, Plan(2)),
        ([], 20, {}, Plan(5)),
        ([], 2, {"failures": Failures(3)}, Plan(0)),
        ([prebuilt(1), prebuilt(2)], 2, {}, Plan()),
        ([prebuilt(1), prebuilt(2)], 1, {}, Plan(0, (UUID(int=2),))),  # the oldest is deleted
        ([prebuilt(1), prebuilt(2)], 0, {}, Plan(0, (UUID(int=2), UUID(int=1)))),
        ([prebuilt(1, is_running=False, is_busy=True)], 1, {}, Plan()),
        ([prebuilt(1, has_failed=True, is_running=False)], 1, {}, Plan(1)),
        ([prebuilt(3)], 1, {"expire_after_seconds": 7200}, Plan(1, (UUID(int=3),))),
        ([prebuilt(1)], 1, {"expire_after_seconds": 7200}, Plan()),
    ],
)
def test_plans(existing: list[Prebuilt], desired: int, rest: dict[str, Any], expected: Plan) -> None:
    assert plan(existing, desired, NOW, **rest) == expected


def test_cron_lines_as_ranges() -> None:
    assert cron_matches("* 9 * * WED", NOW) and cron_matches("30 9 7 1 *", NOW)
    assert not cron_matches("* 10 * * *", NOW) and not cron_matches("", NOW) and not cron_matches("* * * * 8", NOW)


@pytest.mark.parametrize(
    ("line", "matches"),
    [
        ("* 9 1 * 3", True),  # not the first, but a Wednesday
        ("* 9 7 * 1", True),  # no Monday, but the seventh
        ("* 9 1 * 1", False),
        ("* 9 */2 * 1", True),  # with a step a star is a list like others: of 1, 3, 5, 7
        ("* 9 * * 1", False),
        ("* 9 1 * *", False),
        ("* 9 1 * ?", False),
        ("* 9 1 2 3", False),  # a month never counts as an alternative
    ],
)
def test_either_day_field_matches(line: str, matches: bool) -> None:
    assert cron_matches(line, NOW) is matches
