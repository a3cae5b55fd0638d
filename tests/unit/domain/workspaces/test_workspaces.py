"""Times to live, deadlines, autostart and shared ports: refusals with their texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from coder.domain.foundation.schedules import WeeklySchedule
from coder.domain.foundation.search import FieldRefusal
from coder.domain.workspaces.workspaces import (
    MAX_TTL_MS,
    WORKSPACE_ROLES,
    explain_deadline,
    explain_ttl,
    next_start,
    parse_autostart,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)  # a Friday


@pytest.mark.parametrize(
    ("ttl_ms", "message"),
    [
        (None, None),
        (0, None),
        (60_000, None),
        (MAX_TTL_MS, None),
        (1, "at least one minute"),
        (59_999, "at least one minute"),
        (-1, "at least one minute"),
        (MAX_TTL_MS + 1, "at most a hundred years"),
    ],
)
def test_ttl_is_at_least_a_minute(ttl_ms: int | None, message: str | None) -> None:
    refusal = explain_ttl(ttl_ms)
    assert (refusal is None) == (message is None)
    if refusal is not None and message is not None:
        assert refusal.field == "ttl_ms" and message in refusal.detail


@pytest.mark.parametrize(
    ("minutes", "latest", "message"),
    [
        (30, None, None),
        (29, None, "at least 30 minutes"),
        (-5, None, "at least 30 minutes"),
        (60, 60, None),
        (61, 60, "greater than max allowed"),
        (20, 10, "at least 30 minutes"),
    ],
)
def test_deadline_extension_is_bounded(minutes: int, latest: int | None, message: str | None) -> None:
    maximum = None if latest is None else NOW + timedelta(minutes=latest)
    result = explain_deadline(NOW, NOW + timedelta(minutes=minutes), maximum)
    assert (result is None) if message is None else (result is not None and message in result)


def test_autostart_follows_schedule_and_days() -> None:
    schedule = "CRON_TZ=Europe/Berlin 30 9 * * 1-5"
    assert isinstance(parse_autostart(schedule), WeeklySchedule)
    assert isinstance(parse_autostart("30 9 1 * *"), FieldRefusal)
    assert next_start(schedule, NOW) == datetime(2026, 11, 23, 8, 30, tzinfo=UTC)
    assert next_start(schedule, NOW, allowed_days=2) == datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
    assert next_start(schedule, NOW, allowed_days=64) is None
    assert next_start(None, NOW) is None
    assert next_start("nonsense", NOW) is None


def test_use_role_cannot_change_workspace() -> None:
    assert WORKSPACE_ROLES["use"] < WORKSPACE_ROLES["admin"]
    assert not {"delete", "create", "update", "share"} & WORKSPACE_ROLES["use"]
    assert "delete" not in WORKSPACE_ROLES["admin"]
