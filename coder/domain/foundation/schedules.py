"""Schedules in cron's words: weekly ones of autostart (`CRON_TZ=Europe/Berlin 30 9 * * 1-5`), daily quiet hours.

Standard cron narrowed as the API narrows it: five fields of which day-of-month and month must be `*`; the zone is
optional and defaults to UTC. Clock changes as robfig/cron has them, which upstream runs on: a time that is skipped does
not happen that day, a doubled one happens twice.

Not here: what a schedule means for a workspace (`domain/workspaces/autobuild.py`, `domain/workspaces/autostop.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coder.domain.foundation.numbers import decimal

_WEEKDAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_PREFIX = re.compile(r"(?:CRON_TZ|TZ)=(\S*)\s+(.*)", re.DOTALL)


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


def parse_weekly(text: str) -> WeeklySchedule:
    """Reads a schedule. Raises ScheduleError."""
    zone, body = _split_zone(text)
    fields = body.split()
    if len(fields) < 5:
        raise ScheduleError(
            "validate weekly schedule: expected schedule to consist of 5 fields with an optional "
            "CRON_TZ=<timezone> prefix"
        )
    if fields[2] != "*" or fields[3] != "*":
        raise ScheduleError("validate weekly schedule: expected day-of-month and month to be *")
    if len(fields) > 5:
        raise ScheduleError(f"parse schedule: expected exactly 5 fields, found {len(fields)}: {fields}")
    _check_zone(zone)
    return WeeklySchedule(
        zone,
        _field(fields[0], 0, 59),
        _field(fields[1], 0, 23),
        frozenset(day % 7 for day in _field(fields[4], 0, 7, _WEEKDAYS)),
    )


def parse_daily(text: str) -> WeeklySchedule:
    """Reads quiet hours: one time a day, every day. Raises ScheduleError with upstream's words."""
    _, body = _split_zone(text)
    fields = body.split()
    if len(fields) >= 5 and fields[4] != "*":
        raise ScheduleError("validate daily schedule: expected day-of-week to be *")
    schedule = parse_weekly(text)
    if schedule.hour_and_minute is None:
        raise ScheduleError("parse schedule: expected exactly one time a day: minute and hour must be single numbers")
    return schedule


def _split_zone(text: str) -> tuple[str, str]:
    match = _PREFIX.fullmatch(text.strip())
    return (match.group(1), match.group(2)) if match else ("UTC", text)


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(f"parse schedule: provided bad location {zone}: unknown time zone {zone}") from error


def _field(text: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, _, step_text = part.partition("/")
        step = _number(step_text, names) if step_text else 1
        if span in {"*", "?"}:
            first, last = low, high
        else:
            first_text, dash, last_text = span.partition("-")
            first = _number(first_text, names)
            last = _number(last_text, names) if dash else (high if step_text else first)
        fault = (
            f"beginning of range ({first}) below minimum ({low})" if first < low
            else f"end of range ({last}) above maximum ({high})" if last > high
            else f"beginning of range ({first}) beyond end of range ({last})" if first > last
            else "step of range should be a positive number" if step < 1
            else ""
        )  # fmt: skip
        if fault:
            raise ScheduleError(f"parse schedule: {fault}: {part}")
        values.update(range(first, last + 1, step))
    return frozenset(values)


def _number(text: str, names: dict[str, int] | None) -> int:
    if names and text.lower() in names:
        return names[text.lower()]
    number = decimal(text)
    if number is None:
        raise ScheduleError(
            f'parse schedule: failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
        )
    return number


def cron_matches(text: str, local: datetime) -> bool:
    """Whether a wall-clock time falls into a cron line of five fields; no text matches nothing."""
    fields = text.split()
    if len(fields) != 5:
        return False
    spans = ((0, 59), (0, 23), (1, 31), (1, 12))
    here = (local.minute, local.hour, local.day, local.month)
    try:
        if any(now not in _field(part, *span) for part, span, now in zip(fields, spans, here, strict=False)):
            return False
        return local.isoweekday() % 7 in {day % 7 for day in _field(fields[4], 0, 7, _WEEKDAYS)}
    except ScheduleError:
        return False
