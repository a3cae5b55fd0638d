"""Deadlines: time to live, required stops at quiet hours over clock changes, activity."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.domain.foundation.schedules import ScheduleError, parse_daily
from coder.domain.workspaces.autostop import LEEWAY, Requirement, bumped_deadline, deadlines, quiet_hours, required_stop

MON, TUE, WED, THU, FRI, SAT, SUN = (1 << day for day in range(7))
HOUR = 3_600_000


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("now", "days", "weeks", "quiet", "stop"),
    [
        # Wednesday morning, every Saturday at midnight in Berlin: the Saturday that begins then
        ("2026-01-07T08:00:00Z", SAT, 1, "CRON_TZ=Europe/Berlin 0 0 * * *", "2026-01-09T23:00:00Z"),
        # every day: tonight; but not when tonight is less than an hour away
        ("2026-01-07T20:00:00Z", 127, 1, "CRON_TZ=UTC 0 22 * * *", "2026-01-07T22:00:00Z"),
        ("2026-01-07T21:30:00Z", 127, 1, "CRON_TZ=UTC 0 22 * * *", "2026-01-08T22:00:00Z"),
        ("2026-01-07T23:30:00Z", 127, 1, "CRON_TZ=UTC 0 0 * * *", "2026-01-09T00:00:00Z"),
        # the night the clocks change, both ways
        ("2026-03-28T12:00:00Z", SUN, 1, "CRON_TZ=Europe/Berlin 0 4 * * *", "2026-03-29T02:00:00Z"),
        ("2026-10-24T12:00:00Z", SUN, 1, "CRON_TZ=Europe/Berlin 0 4 * * *", "2026-10-25T03:00:00Z"),
        # quiet hours that do not exist in the night of spring: the next day's apply
        ("2026-03-28T12:00:00Z", SUN, 1, "CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-30T00:30:00Z"),
        # far away: Tuesday there begins while it is Monday here
        ("2026-01-05T06:00:00Z", TUE, 1, "CRON_TZ=Pacific/Kiritimati 0 1 * * *", "2026-01-05T11:00:00Z"),
        ("2026-01-06T06:00:00Z", MON, 1, "CRON_TZ=Pacific/Pago_Pago 30 23 * * *", "2026-01-06T10:30:00Z"),
        # a leap day
        ("2028-02-28T12:00:00Z", TUE, 1, "CRON_TZ=UTC 0 3 * * *", "2028-02-29T03:00:00Z"),
        # every second week: week 156 after the epoch is 29 December 2025
        ("2026-01-07T08:00:00Z", SAT, 2, "CRON_TZ=UTC 0 3 * * *", "2026-01-17T03:00:00Z"),
        ("2026-01-13T08:00:00Z", MON, 2, "CRON_TZ=UTC 0 3 * * *", "2026-01-26T03:00:00Z"),
    ],
)
def test_required_stops(now: str, days: int, weeks: int, quiet: str, stop: str) -> None:
    assert required_stop(at(now), Requirement(days, weeks), parse_daily(quiet)) == at(stop)


def test_requirement_bounds_deadline() -> None:
    now, quiet = at("2026-01-07T08:00:00Z"), parse_daily("CRON_TZ=UTC 0 22 * * *")
    tonight = at("2026-01-07T22:00:00Z")
    assert deadlines(now, None, Requirement(127), quiet) == (
        result := deadlines(now, 48 * HOUR, Requirement(127), quiet)
    )
    assert (result.deadline, result.maximum) == (tonight, tonight)
    short = deadlines(now, 2 * HOUR, Requirement(127), quiet)
    assert (short.deadline, short.maximum) == (now + timedelta(hours=2), tonight)
    free = deadlines(now, None, Requirement(0), quiet)
    assert (free.deadline, free.maximum) == (None, None)


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    st.integers(1, 127),
    st.integers(1, 16),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Kiritimati", "Australia/Lord_Howe"]),
    st.integers(0, 23),
)
def test_required_stop_is_neither_soon_nor_missing(now: datetime, days: int, weeks: int, zone: str, hour: int) -> None:
    stop = required_stop(now, Requirement(days, weeks), parse_daily(f"CRON_TZ={zone} 0 {hour} * * *"))
    assert stop is not None
    assert now + LEEWAY <= stop <= now + timedelta(weeks=weeks + 2)


def test_stored_quiet_hours_still_parse() -> None:
    """With the older prefix, which is refused now: of a user, and of a server's setting."""
    for chosen, default in (("TZ=Europe/Berlin 30 3 * * *", ""), ("", "TZ=Europe/Berlin 30 3 * * *")):
        with pytest.raises(ScheduleError):
            parse_daily(chosen or default)
        assert quiet_hours(chosen, default) == parse_daily("CRON_TZ=Europe/Berlin 30 3 * * *")


def test_activity_never_moves_deadline_back() -> None:
    now = at("2026-01-07T08:00:00Z")
    minute = timedelta(minutes=1)
    assert bumped_deadline(now, now + 35 * minute, None, bump_ms=HOUR) == now + 60 * minute
    assert bumped_deadline(now, now + 58 * minute, None, bump_ms=HOUR) is None, "more than 95 % of the bump remains"
    assert bumped_deadline(now, now + 57 * minute, None, bump_ms=HOUR) == now + 60 * minute
    assert bumped_deadline(now, now + 600 * minute, None, bump_ms=HOUR) is None
    assert bumped_deadline(now, None, None, bump_ms=HOUR) is None, "it has no deadline"
    assert bumped_deadline(now, now + minute, None, bump_ms=0) is None, "the template switched it off"
    assert bumped_deadline(now, now + minute, now + 30 * minute, bump_ms=HOUR) == now + 30 * minute


def test_activity_before_autostart_extends_through() -> None:
    now = at("2026-01-07T08:30:00Z")
    nine = at("2026-01-07T09:00:00Z")
    moved = bumped_deadline(now, now, None, bump_ms=HOUR, next_autostart=nine, ttl_ms=8 * HOUR)
    assert moved == nine + timedelta(hours=8)
    later = bumped_deadline(now, now, None, bump_ms=HOUR, next_autostart=nine + timedelta(hours=9), ttl_ms=8 * HOUR)
    assert later == now + timedelta(hours=1)
