from collections.abc import Callable
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


def test_default_zone_and_lists() -> None:
    schedule = parse_weekly("0 7,9 * * *")
    assert schedule.next_after(datetime(2026, 1, 1, 7, tzinfo=UTC)) == datetime(2026, 1, 1, 9, tzinfo=UTC)


def test_skipped_time_does_not_occur() -> None:
    schedule = parse_weekly("CRON_TZ=Europe/Berlin 30 2 * * *")
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)  # clocks go from 2:00 to 3:00 on the 29th
    assert schedule.next_after(before) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)


def test_doubled_time_occurs_twice() -> None:
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
        # far away: the day there differs from the day here
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


def test_quiet_hours_require_one_daily_time() -> None:
    assert parse_daily("CRON_TZ=Europe/Berlin 30 22 * * *").hour_and_minute == (22, 30)
    for wrong in ("CRON_TZ=UTC 0 0 * * 1", "CRON_TZ=UTC 0,30 1 * * *", "CRON_TZ=UTC * 1 * * *"):
        with pytest.raises(ScheduleError):
            parse_daily(wrong)


def test_a_template_may_forbid_days() -> None:
    schedule = parse_weekly("0 9 * * *")
    saturday = datetime(2026, 1, 3, 12, tzinfo=UTC)
    assert schedule.next_after(saturday, allowed_days=0b0000001) == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert schedule.next_after(saturday, allowed_days=0) is None


MINUTES, HOURS, DAYS = (0, 59), (0, 23), (0, 6)
TAKEN: dict[str, Callable[[int, int], set[int]]] = {
    "*": lambda low, high: set(range(low, high + 1)),
    "?": lambda low, high: set(range(low, high + 1)),
    "{low}": lambda low, high: {low},
    "{high}": lambda low, high: {high},
    "+1": lambda low, high: {1},
    "{low}-{high}": lambda low, high: set(range(low, high + 1)),
    "*-junk": lambda low, high: set(range(low, high + 1)),
    "1,3,,5,": lambda low, high: {1, 3, 5},
    "*/2": lambda low, high: set(range(low, high + 1, 2)),
    "?/3": lambda low, high: set(range(low, high + 1, 3)),
    "2/3": lambda low, high: set(range(2, high + 1, 3)),
    "1-5/2": lambda low, high: {1, 3, 5},
    "1-3,5/1": lambda low, high: {1, 2, 3, *range(5, high + 1)},
    "{low}/99": lambda low, high: {low},
    ",": lambda low, high: set(),
}
"""Forms of a field, and the values of each between two bounds."""
REFUSED = {
    "{above}": "end of range ({above}) above maximum ({high}): {above}",
    "{low}-{above}": "end of range ({above}) above maximum ({high}): {low}-{above}",
    "5-3": "beginning of range (5) beyond end of range (3): 5-3",
    "*/0": "step of range should be a positive number: */0",
    "1/0": "step of range should be a positive number: 1/0",
    "*/-1": "negative number (-1) not allowed: -1",
    "-1": 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax',
    "1-": 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax',
    "1-2-3": "too many hyphens: 1-2-3",
    "1/2/3": "too many slashes: 1/2/3",
    "*/x": 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
    "*/mon": 'failed to parse int from mon: strconv.Atoi: parsing "mon": invalid syntax',
    "1.5": 'failed to parse int from 1.5: strconv.Atoi: parsing "1.5": invalid syntax',
    "monday": 'failed to parse int from monday: strconv.Atoi: parsing "monday": invalid syntax',
    "L": 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax',
    "1#2": 'failed to parse int from 1#2: strconv.Atoi: parsing "1#2": invalid syntax',
}
PLACES = (("{} 9 * * 1", "minutes", MINUTES), ("0 {} * * 1", "hours", HOURS), ("0 9 * * {}", "weekdays", DAYS))


@pytest.mark.parametrize(("line", "attribute", "bounds"), PLACES)
def test_every_form_of_a_field(line: str, attribute: str, bounds: tuple[int, int]) -> None:
    low, high = bounds
    words = {"low": low, "high": high, "above": high + 1}
    for form, expected in TAKEN.items():
        schedule = parse_weekly(line.format(form.format(**words)))
        assert getattr(schedule, attribute) == expected(low, high), form
    for form, detail in REFUSED.items():
        with pytest.raises(ScheduleError) as refused:
            parse_weekly(line.format(form.format(**words)))
        assert str(refused.value) == "parse schedule: " + detail.format(**words)


def test_only_days_have_names() -> None:
    assert parse_weekly("0 9 * * SUN,tue-Thu").weekdays == {0, 2, 3, 4}
    assert parse_weekly("0 9 * * mon/2").weekdays == {1, 3, 5}
    for line in ("mon 9 * * *", "0 mon * * *"):
        with pytest.raises(ScheduleError, match="failed to parse int from mon"):
            parse_weekly(line)


def test_stored_old_forms_still_parse() -> None:
    """Sunday as 7 and the older prefix are refused; a workspace that has stored them starts as before."""
    for line in ("0 9 * * 7", "TZ=UTC 0 9 * * 0"):
        with pytest.raises(ScheduleError):
            parse_weekly(line)
        assert parse_weekly(line, stored=True) == parse_weekly("0 9 * * 0")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (
            "",
            "validate weekly schedule: expected schedule to consist of 5 fields with an optional CRON_TZ=<timezone>",
        ),
        ("@daily", "validate weekly schedule: expected schedule to consist of 5 fields"),
        ("CRON_TZ=UTC @every 1h", "validate weekly schedule: expected schedule to consist of 5 fields"),
        ("@every 1h * * *", "parse schedule: parser does not accept descriptors: @every 1h * * *"),
        ("CRON_TZ=UTC 0 7 1 * *", "validate weekly schedule: expected day-of-month and month to be *"),
        ("CRON_TZ=UTC 0 7 ? * *", "validate weekly schedule: expected day-of-month and month to be *"),
        ("CRON_TZ=UTC 0 0 7 * * *", "validate weekly schedule: expected day-of-month and month to be *"),
        ("0 0 7 * * *", "parse schedule: expected exactly 5 fields, found 6: [0 0 7 * * *]"),
        ("TZ=UTC 0 7 * * *", "parse schedule: expected exactly 5 fields, found 6: [TZ=UTC 0 7 * * *]"),
        ("CRON_TZ=UTC 0 * * *", "parse schedule: expected exactly 5 fields, found 4: [0 * * *]"),
        (
            "CRON_TZ=Mars/North 0 7 * * *",
            "parse schedule: provided bad location Mars/North: unknown time zone Mars/North",
        ),
        ("CRON_TZ=../../etc/passwd 0 7 * * *", "parse schedule: provided bad location ../../etc/passwd: time: invalid"),
        ("CRON_TZ=/etc/localtime 0 7 * * *", "parse schedule: provided bad location /etc/localtime: time: invalid"),
    ],
)
def test_refusals(text: str, detail: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_weekly(text)
    assert str(refused.value).startswith(detail)


def test_empty_zone_prefix_is_utc() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_weekly("CRON_TZ= 0 7 * * *").next_after(now) == datetime(2026, 1, 1, 7, tzinfo=UTC)


@given(text())
def test_arbitrary_text_parses_or_fails(words: str) -> None:
    try:
        schedule = parse_weekly(words)
    except ScheduleError:
        return
    assert schedule.weekdays <= set(range(7))
