"""Next runs of cron lines, which the Terraform provider has accepted."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from coder.agent.workspace.cron import next_run
from coder.domain.foundation.cron import CronError
from tests.kit.paths import ROOT

START = datetime(2026, 2, 27, 23, 59, 12, 345678, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("30 * * * * *", "2026-02-27T23:59:30+00:00"),
        ("0 0 9 * * mon-fri", "2026-03-02T09:00:00+00:00"),
        ("@hourly", "2026-02-28T00:00:00+00:00"),
        ("@every 90s", "2026-02-28T00:00:42.345678+00:00"),
        # never as fast as the machine can
        ("@every 0s", "2026-02-27T23:59:13.345678+00:00"),
        ("@every -5m", "2026-02-27T23:59:13.345678+00:00"),
        ("0 0 12 1 * sun", "2026-03-01T12:00:00+00:00"),
        # the day of the week may be omitted; seconds are first all the same
        ("*/15 * * * *", "2026-02-27T23:59:15+00:00"),
        ("0 0 4 * *", "2026-02-28T04:00:00+00:00"),
        ("0 0 0 29 2", "2028-02-29T00:00:00+00:00"),
        # a star with a step of one is still a star, with another step a list of days
        ("0 0 12 */1 * sun", "2026-03-01T12:00:00+00:00"),
        ("0 0 12 */2 * sun", "2026-03-01T12:00:00+00:00"),
        ("0 0 12 ? * sat", "2026-02-28T12:00:00+00:00"),
        # a line with its own zone
        ("TZ=Asia/Tokyo 0 0 9 * * *", "2026-02-28T09:00:00+09:00"),
        ("CRON_TZ=America/New_York 0 30 2 8 3 *", "2026-03-08T02:30:00-05:00"),
        ("TZ=Asia/Tokyo @daily", "2026-03-01T00:00:00+09:00"),
        ("TZ= 0 0 9 * * *", "2026-02-28T09:00:00+00:00"),
        ("TZ=Local 0 0 9 * * *", "2026-02-28T09:00:00+00:00"),
    ],
)
def test_next_run(line: str, expected: str) -> None:
    found = next_run(line, START)
    assert found is not None and found.isoformat() == expected


SUMMER, WINTER = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("after", "line", "expected"),
    [
        # the clock goes from 2:00 to 3:00 on 29 March, and from 3:00 to 2:00 on 25 October
        (datetime(2026, 3, 28, 12, tzinfo=WINTER), "0 0 4 * * *", "2026-03-29T04:00:00+02:00"),
        (datetime(2026, 10, 24, 12, tzinfo=SUMMER), "0 0 4 * * *", "2026-10-25T04:00:00+01:00"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=SUMMER), "0 * * * * *", "2026-10-25T02:31:00+02:00"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=WINTER), "0 * * * * *", "2026-10-25T02:31:00+01:00"),
        (datetime(2026, 10, 25, 2, 59, tzinfo=WINTER), "0 * * * * *", "2026-10-25T03:00:00+01:00"),
        # hourly jobs skip no hour
        (datetime(2026, 10, 25, 2, 59, tzinfo=SUMMER), "0 * * * * *", "2026-10-25T02:00:00+01:00"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=SUMMER), "0 30 * * * *", "2026-10-25T02:30:00+01:00"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=SUMMER), "0 30 0-23 * * *", "2026-10-25T02:30:00+01:00"),
        (datetime(2026, 3, 29, 1, 59, tzinfo=WINTER), "0 * * * * *", "2026-03-29T03:00:00+02:00"),
        (datetime(2026, 3, 29, 1, 30, tzinfo=WINTER), "0 30 * * * *", "2026-03-29T03:30:00+02:00"),
        # jobs with fixed hours run once: at the first of two equal times, an hour later for a skipped one
        (datetime(2026, 10, 25, 1, 0, tzinfo=SUMMER), "0 30 2 * * *", "2026-10-25T02:30:00+02:00"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=SUMMER), "0 30 2 * * *", "2026-10-26T02:30:00+01:00"),
        (datetime(2026, 10, 25, 2, 55, tzinfo=SUMMER), "0 */5 2 * * *", "2026-10-26T02:00:00+01:00"),
        (datetime(2026, 10, 25, 2, 55, tzinfo=SUMMER), "0 */5 2,3 * * *", "2026-10-25T03:00:00+01:00"),
        (datetime(2026, 3, 29, 1, 0, tzinfo=WINTER), "0 30 2 * * *", "2026-03-29T02:30:00+01:00"),
        (datetime(2026, 3, 29, 3, 30, tzinfo=SUMMER), "0 30 2 * * *", "2026-03-30T02:30:00+02:00"),
        # a year later the clock has changed twice
        (datetime(2026, 1, 1, tzinfo=WINTER), "0 30 2 25 10 *", "2026-10-25T02:30:00+02:00"),
        (datetime(2026, 1, 1, tzinfo=WINTER), "0 0 12 1 7 *", "2026-07-01T12:00:00+02:00"),
    ],
)
@pytest.mark.parametrize("zone", ["", "TZ=Local ", "TZ=Europe/Berlin "])
def test_clock_changes(after: datetime, line: str, expected: str, zone: str, berlin: None) -> None:
    found = next_run(zone + line, after)
    assert found is not None and datetime.fromisoformat(expected) == found > after
    assert found.isoformat() == expected


@pytest.mark.parametrize("zone", ["", "TZ=Europe/Berlin ", "TZ=Australia/Lord_Howe ", "TZ=America/Havana "])
@pytest.mark.parametrize("begin", [datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 9, 25, tzinfo=UTC)])
def test_hourly_job_skips_no_hour(zone: str, begin: datetime, berlin: None) -> None:
    at = begin.astimezone()
    for _ in range(24 * 50):
        found = next_run(f"{zone}0 0 * * * *", at)
        assert found is not None and timedelta(minutes=30) <= found - at <= timedelta(minutes=90), at
        at = found.astimezone()


def test_zones_load_on_demand() -> None:
    program = """
        import sys
        from datetime import datetime
        from coder.agent.workspace.cron import next_run
        next_run("0 0 4 * * *", datetime.now().astimezone())
        assert not {"zoneinfo", "sysconfig"} & sys.modules.keys()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={"PYTHONPATH": str(ROOT)}, check=True)


def test_utc_needs_no_zone_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small container has no zone database, and every other zone is rejected there."""
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.ZoneInfo.clear_cache()
    zoneinfo.reset_tzpath(to=())
    try:
        found = next_run("CRON_TZ=UTC 0 0 9 * * *", START)
    finally:
        zoneinfo.reset_tzpath()
    assert found is not None and found.isoformat() == "2026-02-28T09:00:00+00:00"


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("line", ["0 0 0 30 2 *", ", * * * * *", "0 , * * * *", "0 0 , * * *", "0 0 0 , * ,"])
def test_never(line: str) -> None:
    """Answered immediately, without checking every second of five years."""
    assert next_run(line, START) is None


def test_longest_interval_is_valid() -> None:
    found = next_run("@every 2562047h", START)
    assert found is not None and found.year == 2318


@pytest.mark.parametrize(
    "line",
    [
        "",
        "* * *",
        "61 * * * * *",
        "a b c d e",
        "*/x * * * * *",
        "0 0 0 * * 7",
        "@often",
        # beyond the range of dates
        "@every 99999999h",
        "@every 9000y",
    ],
)
def test_malformed(line: str) -> None:
    with pytest.raises(CronError):
        next_run(line, START)
