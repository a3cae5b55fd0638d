"""Schedules in cron syntax: weekly ones of autostart (`CRON_TZ=Europe/Berlin 30 9 * * 1-5`), daily quiet hours.

Standard cron narrowed as the API narrows it: five fields of which day-of-month and month must be `*`; the zone is
optional and defaults to UTC. Clock changes follow robfig/cron, which upstream uses: a skipped time does not occur that
day, a doubled one occurs twice.

Not here: parsing of fields (`cron.py` in this package), and the effect of a schedule on a workspace
(`domain/workspaces/autobuild.py`, `domain/workspaces/autostop.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coder.domain.foundation.cron import DOM, DOW, DOW_OR_SEVEN, HOUR, MINUTE, MONTH, CronError, Field, parse_field


class ScheduleError(ValueError):
    """A text that is not a weekly schedule; the message is the API's detail."""


@dataclass(frozen=True, slots=True)
class WeeklySchedule:
    zone: str
    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]
    "0 = Sunday … 6 = Saturday."

    def next_after(self, now: datetime, *, allowed_days: int = 127) -> datetime | None:
        """Return the first moment after `now` (aware). `allowed_days`: a template's mask, Monday = 1 … Sunday = 64.

        None when no day is allowed (or the times never exist in that zone).
        """
        zone = ZoneInfo(self.zone)
        local = now.astimezone(zone)
        for ahead in range(9):  # a week and the day that a clock change may skip
            day = local.date() + timedelta(days=ahead)
            if day.isoweekday() % 7 not in self.weekdays or not allowed_days >> day.weekday() & 1:
                continue
            for hour in sorted(self.hours):
                results = [moment for minute in self.minutes for moment in _moments(day, hour, minute, zone)]
                later = [moment for moment in results if moment > now]
                if later:
                    return min(later)
        return None

    @property
    def hour_and_minute(self) -> tuple[int, int] | None:
        """Return the wall-clock time if there is only one a day, else None."""
        if len(self.hours) != 1 or len(self.minutes) != 1:
            return None
        return next(iter(self.hours)), next(iter(self.minutes))


def _moments(day: date, hour: int, minute: int, zone: ZoneInfo) -> list[datetime]:
    """Return the moments at which a wall clock in `zone` shows that time: none (skipped), one or two (doubled)."""
    results = []
    for fold in (0, 1):
        wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold)
        moment = wall.astimezone(UTC)
        back = moment.astimezone(zone)
        if back.replace(tzinfo=None, fold=0) == wall.replace(tzinfo=None, fold=0) and moment not in results:
            results.append(moment)
    return results


def parse_weekly(text: str, *, stored: bool = False) -> WeeklySchedule:
    """Parse a schedule. `stored`: accepted when `TZ=` and 7 for Sunday were still valid. Raises ScheduleError."""
    _check_open_fields(text, "weekly")
    return _parse(text, stored=stored)


def parse_daily(text: str, *, stored: bool = False) -> WeeklySchedule:
    """Parse quiet hours: one time a day, every day. `stored` as above. Raises ScheduleError with upstream's words."""
    _check_open_fields(text, "daily")
    schedule = _parse(text, stored=stored)
    if schedule.hour_and_minute is None:
        raise ScheduleError("parse schedule: expected exactly one time a day: minute and hour must be single numbers")
    return schedule


def explain_weekly(text: str) -> str:
    """Return why an autostart schedule is invalid; empty when it is valid or empty, which means none."""
    return _explain(parse_weekly, text)


def explain_daily(text: str) -> str:
    """Return why quiet hours are invalid; empty when they are valid or empty."""
    return _explain(parse_daily, text)


def _explain(parse: Callable[[str], WeeklySchedule], text: str) -> str:
    try:
        if text:
            parse(text)
    except ScheduleError as error:
        return str(error)
    return ""


def _check_open_fields(text: str, kind: str) -> None:
    """Check that the open fields are `*`. Six words are read as a zone and five fields, whatever the first word is."""
    fields = text.split()
    if len(fields) < 5:
        expected = "expected schedule to consist of 5 fields with an optional CRON_TZ=<timezone> prefix"
        raise ScheduleError(f"validate {kind} schedule: {expected}")
    if len(fields) == 6:
        del fields[0]
    if fields[2] != "*" or fields[3] != "*":
        raise ScheduleError(f"validate {kind} schedule: expected day-of-month and month to be *")
    if kind == "daily" and fields[4] != "*":
        raise ScheduleError("validate daily schedule: expected day-of-week to be *")


def _parse(text: str, *, stored: bool = False) -> WeeklySchedule:
    zone, fields = _split_zone(text, ("CRON_TZ=", "TZ=") if stored else ("CRON_TZ=",))
    _check_zone(zone)
    if fields and fields[0].startswith("@"):
        raise ScheduleError(f"parse schedule: parser does not accept descriptors: {' '.join(fields)}")
    if len(fields) != 5:
        raise ScheduleError(f"parse schedule: expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    return WeeklySchedule(
        zone,
        _values(fields[0], MINUTE),
        _values(fields[1], HOUR),
        frozenset(day % 7 for day in _values(fields[4], DOW_OR_SEVEN if stored else DOW)),
    )


def _split_zone(text: str, prefixes: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the zone and the remaining words. A prefix without a zone means UTC, as a missing prefix does."""
    words = text.split()
    for prefix in prefixes:
        if words and words[0].startswith(prefix):
            return words[0].removeprefix(prefix) or "UTC", words[1:]
    return "UTC", words


def _check_zone(zone: str) -> None:
    if ".." in zone or zone.startswith(("/", "\\")):
        raise ScheduleError(f"parse schedule: provided bad location {zone}: time: invalid location name")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(f"parse schedule: provided bad location {zone}: unknown time zone {zone}") from error


def _values(text: str, field: Field) -> frozenset[int]:
    try:
        return parse_field(text, field).values
    except CronError as error:
        raise ScheduleError(f"parse schedule: {error.message}") from error


def cron_matches(text: str, local: datetime) -> bool:
    """Return whether a wall-clock time matches a cron line of five fields; an empty line matches nothing."""
    fields = text.split()
    if len(fields) != 5:
        return False
    try:
        minute, hour, dom, month, dow = map(parse_field, fields, (MINUTE, HOUR, DOM, MONTH, DOW_OR_SEVEN))
    except CronError:
        return False
    if local.minute not in minute.values or local.hour not in hour.values or local.month not in month.values:
        return False
    on_dom, on_dow = local.day in dom.values, local.isoweekday() % 7 in {day % 7 for day in dow.values}
    # Either field is sufficient, unless one is a star: as in robfig/cron and the agent.
    return (on_dom and on_dow) if dom.star or dow.star else (on_dom or on_dow)
