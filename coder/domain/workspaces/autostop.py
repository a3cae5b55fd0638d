"""Deadlines of running workspaces: time to live, the template's autostop requirement, activity.

Upstream's rules (tests/data/api/recorded/timing-semantics.md, "Schedule" and "Activity"). A requirement names days of
the week, and an interval in weeks; on those days the workspace stops at its owner's quiet hours. Weeks count from
Monday, 2 January 2023. Times are aware; days are bit masks, Monday = 1 … Sunday = 64.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from coder.domain.foundation.schedules import ScheduleError, WeeklySchedule, parse_daily

LEEWAY = timedelta(hours=1)
"""A workspace started this shortly before its quiet hours is left running until the next ones."""
BUFFER = timedelta(minutes=15)
"""Offset before midnight, so that quiet hours at midnight count for the day that begins then."""
EPOCH = date(2023, 1, 2)
MAX_WEEKS = 16
BUMP_SHARE = 0.05
"""Minimum gain, as a share of the bump, for a deadline to move: otherwise every report would write a row."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A template's autostop requirement. `days` 0 means none."""

    days: int
    weeks: int = 1


@dataclass(frozen=True, slots=True)
class Deadlines:
    deadline: datetime | None
    """Time of the stop, unless activity or a user moves it."""
    maximum: datetime | None
    """Latest time a deadline can be moved to."""


def deadlines(
    now: datetime, ttl_ms: int | None, requirement: Requirement, quiet_hours: WeeklySchedule | None
) -> Deadlines:
    """Return the deadlines of a start build that ended at `now`."""
    deadline = now + timedelta(milliseconds=ttl_ms) if ttl_ms else None
    maximum = required_stop(now, requirement, quiet_hours) if quiet_hours is not None else None
    if maximum is not None and (deadline is None or maximum < deadline):
        deadline = maximum
    return Deadlines(deadline, maximum)


def required_stop(now: datetime, requirement: Requirement, quiet_hours: WeeklySchedule) -> datetime | None:
    """Return the next quiet hours on a day the template requires; None without a requirement."""
    if not requirement.days & 127:
        return None
    zone = ZoneInfo(quiet_hours.zone)
    weeks = max(requirement.weeks, 1)
    day = (now.astimezone(zone) + LEEWAY).date()
    for _ in range(7 * (weeks + 1) + 1):
        if requirement.days >> day.weekday() & 1 and (day - EPOCH).days // 7 % weeks == 0:
            stop = quiet_hours.next_after(_midnight(day, zone) - BUFFER)
            if stop is None or stop >= now + LEEWAY:
                return stop
        day += timedelta(days=1)
    return None


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def bumped_deadline(
    now: datetime,
    deadline: datetime | None,
    maximum: datetime | None,
    *,
    bump_ms: int,
    next_autostart: datetime | None = None,
    ttl_ms: int | None = None,
) -> datetime | None:
    """Return the deadline after activity; None when it stays.

    If autostart is due before the new deadline, the deadline is computed as if it had already run: its time plus the
    time to live. A deadline never moves back, nor beyond the maximum.
    """
    if deadline is None or bump_ms <= 0:
        return None
    bump = timedelta(milliseconds=bump_ms)
    target = now + bump
    if next_autostart is not None and now < next_autostart <= target and ttl_ms:
        target = next_autostart + timedelta(milliseconds=ttl_ms)
    if maximum is not None:
        target = min(target, maximum)
    return target if target - deadline >= bump * BUMP_SHARE else None


DEFAULT_QUIET_HOURS = "CRON_TZ=UTC 0 0 * * *"


def quiet_hours(chosen: str, default: str) -> WeeklySchedule:
    """Return a user's quiet hours, or the deployment's."""
    for text in (chosen, default, DEFAULT_QUIET_HOURS):
        if text:
            try:
                return parse_daily(text, stored=True)
            except ScheduleError:  # a zone this machine no longer knows: use the next schedule
                continue
    raise ScheduleError("there are no quiet hours")
