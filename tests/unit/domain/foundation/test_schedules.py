from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis.strategies import text

from coder.domain.foundation.schedules import ScheduleError, parse_daily, parse_weekly


def test_weekdays_in_a_zone() -> None:
    schedule = parse_weekly("CRON_TZ=Europe/Berlin 30 9 * * 1-5")
    friday_evening = datetime(2026, 1, 2, 18, tzinfo=UTC)
    assert schedule.next_after(friday_evening) == datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    assert schedule.next_after(datetime(2026, 7, 6, 0, tzinfo=UTC)) == datetime(2026, 7, 6, 7, 30, tzinfo=UTC)


def test_without_a_zone_it_is_utc_and_lists_are_fine() -> None:
    schedule = parse_weekly("0 7,9 * * *")
    assert schedule.next_after(datetime(2026, 1, 1, 7, tzinfo=UTC)) == datetime(2026, 1, 1, 9, tzinfo=UTC)


def test_a_time_skipped_by_the_clock_change_does_not_happen_that_day() -> None:
    schedule = parse_weekly("CRON_TZ=Europe/Berlin 30 2 * * *")
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)  # clocks go from 2:00 to 3:00 on the 29th
    assert schedule.next_after(before) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)


def test_a_doubled_time_happens_twice() -> None:
    schedule = parse_weekly("CRON_TZ=Europe/Berlin 30 2 * * 0")
    first = schedule.next_after(datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    second = schedule.next_after(first)
    assert second == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert schedule.next_after(second) == datetime(2026, 11, 1, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "now", "following"),
    [
        # leap day, and the year that has none
        ("CRON_TZ=UTC 0 9 * * *", "2028-02-28T09:00:00Z", "2028-02-29T09:00:00Z"),
        ("CRON_TZ=UTC 0 9 * * *", "2027-02-28T09:00:00Z", "2027-03-01T09:00:00Z"),
        ("CRON_TZ=UTC 0 9 * * 2", "2028-02-23T00:00:00Z", "2028-02-29T09:00:00Z"),
        # far away: the day there is not the day here
        ("CRON_TZ=Pacific/Kiritimati 0 7 * * 1", "2026-01-04T12:00:00Z", "2026-01-04T17:00:00Z"),
        ("CRON_TZ=Pacific/Pago_Pago 30 23 * * 0", "2026-01-05T00:00:00Z", "2026-01-05T10:30:00Z"),
        ("CRON_TZ=Asia/Kathmandu 0 0 * * *", "2026-06-01T18:14:00Z", "2026-06-01T18:15:00Z"),
        ("CRON_TZ=Australia/Lord_Howe 45 1 * * *", "2026-04-04T12:00:00Z", "2026-04-04T14:45:00Z"),
        # half an hour doubled on Lord Howe: 1:45 happens at +11:00 and again at +10:30
        ("CRON_TZ=Australia/Lord_Howe 45 1 * * *", "2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"),
        # clocks that change at midnight: Beirut skips 0:00-1:00 on 29 March 2026
        ("CRON_TZ=Asia/Beirut 30 0 * * *", "2026-03-28T12:00:00Z", "2026-03-29T21:30:00Z"),
        # Samoa had no 30 December 2011 at all
        ("CRON_TZ=Pacific/Apia 0 12 * * 5", "2011-12-29T23:00:00Z", "2012-01-05T22:00:00Z"),
        # America: the night of spring, the night of autumn
        ("CRON_TZ=America/New_York 30 2 * * *", "2026-03-08T05:00:00Z", "2026-03-09T06:30:00Z"),
        ("CRON_TZ=America/New_York 0 1 * * *", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z"),
        ("CRON_TZ=America/New_York 30 9 * * 1-5", "2026-03-06T20:00:00Z", "2026-03-09T13:30:00Z"),
        ("CRON_TZ=America/St_Johns 15 8 * * *", "2026-07-01T10:44:00Z", "2026-07-01T10:45:00Z"),
    ],
)
def test_calendars_and_clocks(schedule: str, now: str, following: str) -> None:
    assert parse_weekly(schedule).next_after(datetime.fromisoformat(now)) == datetime.fromisoformat(following)


def test_quiet_hours_are_one_time_every_day() -> None:
    assert parse_daily("CRON_TZ=Europe/Berlin 30 22 * * *").hour_and_minute == (22, 30)
    for wrong in ("CRON_TZ=UTC 0 0 * * 1", "CRON_TZ=UTC 0,30 1 * * *", "CRON_TZ=UTC * 1 * * *"):
        with pytest.raises(ScheduleError):
            parse_daily(wrong)


def test_a_template_may_forbid_days() -> None:
    schedule = parse_weekly("0 9 * * *")
    saturday = datetime(2026, 1, 3, 12, tzinfo=UTC)
    assert schedule.next_after(saturday, allowed_days=0b0000001) == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert schedule.next_after(saturday, allowed_days=0) is None


def test_sunday_is_zero_and_seven_and_names_work() -> None:
    assert parse_weekly("0 9 * * 7").weekdays == parse_weekly("0 9 * * SUN").weekdays == {0}
    assert parse_weekly("*/20 9 * * 1").minutes == {0, 20, 40}


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("tomorrow", "expected schedule to consist of 5 fields with an optional CRON_TZ=<timezone> prefix"),
        ("CRON_TZ=UTC 0 7 1 * *", "expected day-of-month and month to be \\*"),
        ("CRON_TZ=UTC 0 0 7 * * *", "expected day-of-month and month to be \\*"),
        ("CRON_TZ=Mars/North 0 7 * * *", "provided bad location Mars/North"),
        ("CRON_TZ=../../etc/passwd 0 7 * * *", "provided bad location"),
        ("61 7 * * *", r"end of range \(61\) above maximum \(59\)"),
        ("a 7 * * *", "failed to parse int from a"),
        ("*/0 7 * * *", "step of range should be a positive number"),
    ],
)
def test_refusals(text: str, detail: str) -> None:
    with pytest.raises(ScheduleError, match=detail):
        parse_weekly(text)


@given(text())
def test_any_text_is_a_schedule_or_refused(words: str) -> None:
    try:
        schedule = parse_weekly(words)
    except ScheduleError:
        return
    assert schedule.weekdays <= set(range(7))
