from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis.strategies import text

from coder.domain.schedules import ScheduleError, parse_weekly


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


def test_a_doubled_time_happens_once() -> None:
    schedule = parse_weekly("CRON_TZ=Europe/Berlin 30 2 * * 0")
    first = schedule.next_after(datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert schedule.next_after(first) == datetime(2026, 11, 1, 1, 30, tzinfo=UTC)


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
        ("61 7 * * *", "out of range"),
        ("a 7 * * *", "failed to parse int from a"),
        ("*/0 7 * * *", "out of range"),
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
