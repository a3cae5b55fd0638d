"""Schedules in cron's words: weekly ones of autostart (`CRON_TZ=Europe/Berlin 30 9 * * 1-5`), daily quiet hours.

Standard cron narrowed as the API narrows it: five fields of which day-of-month and month must be `*`; the zone is
optional and defaults to UTC. Clock changes as robfig/cron has them, which upstream runs on: a time that is skipped does
not happen that day, a doubled one happens twice.

Not here: how a field is read (`cron.py` beside it), and what a schedule means for a workspace
(`domain/workspaces/autobuild.py`, `domain/workspaces/autostop.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coder.domain.foundation.cron import DOM, DOW, DOW_OR_SEVEN, HOUR, MINUTE, MONTH, CronError, Field, parse_field


class ScheduleError(ValueError):
    """The text is not a weekly schedule; the message is the API's detail."""


@dataclass(frozen=True, slots=True)
class WeeklySchedule:
    zone: str
    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]
    "0 = Sunday … 6 = Saturday."

    def next_after(self, now: datetime, *, allowed_days: int = 127) -> datetime | None:
        """The first moment after `now` (aware). `allowed_days`: a template's mask, Monday = 1 … Sunday = 64.

        None when no day is left (or the times never exist in that zone).
        """
        zone = ZoneInfo(self.zone)
        local = now.astimezone(zone)
        for ahead in range(9):  # a week and the day it may lose to a clock change
            day = local.date() + timedelta(days=ahead)
            if day.isoweekday() % 7 not in self.weekdays or not allowed_days >> day.weekday() & 1:
                continue
            for hour in sorted(self.hours):
                found = [moment for minute in self.minutes for moment in _moments(day, hour, minute, zone)]
                later = [moment for moment in found if moment > now]
                if later:
                    return min(later)
        return None

    @property
    def hour_and_minute(self) -> tuple[int, int] | None:
        """The wall-clock time, when there is only one a day."""
        if len(self.hours) != 1 or len(self.minutes) != 1:
            return None
        return next(iter(self.hours)), next(iter(self.minutes))


def _moments(day: date, hour: int, minute: int, zone: ZoneInfo) -> list[datetime]:
    """When a wall clock in `zone` shows that time: never (skipped), once or twice (doubled)."""
    found = []
    for fold in (0, 1):
        wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold)
        moment = wall.astimezone(UTC)
        back = moment.astimezone(zone)
        if back.replace(tzinfo=None, fold=0) == wall.replace(tzinfo=None, fold=0) and moment not in found:
            found.append(moment)
    return found


def parse_weekly(text: str, *, stored: bool = False) -> WeeklySchedule:
    """Reads a schedule. `stored`: one that was taken when `TZ=` and 7 for Sunday still were. Raises ScheduleError."""
    _check_open_fields(text, "weekly")
    return _parse(text, stored=stored)


def parse_daily(text: str, *, stored: bool = False) -> WeeklySchedule:
    """Reads quiet hours: one time a day, every day. `stored` as above. Raises ScheduleError with upstream's words."""
    _check_open_fields(text, "daily")
    schedule = _parse(text, stored=stored)
    if schedule.hour_and_minute is None:
        raise ScheduleError("parse schedule: expected exactly one time a day: minute and hour must be single numbers")
    return schedule


def explain_weekly(text: str) -> str:
    """What is wrong with an autostart schedule; empty when nothing is, and of no text, which stands for none."""
    return _explain(parse_weekly, text)


def explain_daily(text: str) -> str:
    """The same for quiet hours."""
    return _explain(parse_daily, text)


def _explain(parse: Callable[[str], WeeklySchedule], text: str) -> str:
    try:
        if text:
            parse(text)
    except ScheduleError as error:
        return str(error)
    return ""


def _check_open_fields(text: str, kind: str) -> None:
    """What has to be `*`. Six words are taken for a zone and five fields, whatever the first of them is."""
    fields = text.split()
    if len(fields) < 5:
        wanted = "expected schedule to consist of 5 fields with an optional CRON_TZ=<timezone> prefix"
        raise ScheduleError(f"validate {kind} schedule: {wanted}")
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
    """The zone, and the words behind it. A prefix that names none means UTC, as no prefix does."""
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
    """Whether a wall-clock time falls into a cron line of five fields; no text matches nothing."""
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
    # Either of the two suffices, unless one is a star: as robfig/cron has it, and the agent.
    return (on_dom and on_dow) if dom.star or dow.star else (on_dom or on_dow)
