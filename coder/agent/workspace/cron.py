"""Next run of a script's cron line. The domain's `cron.py` parses the line: seconds first.

As in Vixie cron, a day matches when either day field does, unless one of them is `*`. At a clock change, hourly jobs
keep their interval. Jobs with fixed hours run once: in a skipped hour somewhat later, in a repeated hour the first
time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

from coder.domain.foundation.cron import Every, Schedule, parse_script_cron

_SEARCH_LIMIT = timedelta(days=366 * 5)
"Five years: the longest gap of a valid line (29 February of a leap year) plus slack."
_HOURS = 24
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)
_Clock = Callable[[datetime], timedelta]
"Function of a time that returns the clock's offset from UTC; a clock change is a change of the offset."


def next_run(line: str, after: datetime) -> datetime | None:
    """Return the first time after `after` (aware), in its zone or the line's own; None when there is none.

    Raises CronError.
    """
    schedule = parse_script_cron(line.strip())
    if isinstance(schedule, Every):
        return after + schedule.pause
    if not all(field.values for field in (schedule.second, schedule.minute, schedule.hour)):
        return None  # `,` is an empty list
    ahead, limit = _clock(schedule.zone, after), after + _SEARCH_LIMIT
    at = after.astimezone(UTC).replace(microsecond=0) + _SECOND
    while True:
        # Assume the current offset until the next clock change, then continue from the change.
        zone = timezone(ahead(at))
        candidate = _next_at_fixed_offset(schedule, at.astimezone(zone), limit)
        change = candidate and _first_change(ahead, at, candidate)
        if candidate is None or change is None:
            return candidate
        step = ahead(change) - ahead(at)
        if len(schedule.hour.values) == _HOURS:
            at = change
        elif candidate - change < step:
            return candidate  # the clock skips this time
        else:
            at = change + max(-step, timedelta())


def _clock(name: str | None, after: datetime) -> _Clock:
    """Return the clock of a zone; without a name, of this machine if `after` is in its time zone."""
    if name in {"", "UTC"}:  # need no time zone database
        return lambda _: timedelta()
    if name is not None and name != "Local":
        from zoneinfo import ZoneInfo  # few lines name a zone, and the import reads this Python's configuration

        zone = ZoneInfo(name)
        return lambda at: at.astimezone(zone).utcoffset() or timedelta()
    offset = after.utcoffset() or timedelta()
    if after.astimezone().utcoffset() != offset:
        return lambda _: offset
    return lambda at: at.astimezone().utcoffset() or timedelta()


def _first_change(ahead: _Clock, begin: datetime, end: datetime) -> datetime | None:
    """Return the first second after the next clock change, up to `end`."""
    before, upper = ahead(begin), begin
    while upper < end and ahead(upper) == before:  # no change is reverted within a day
        begin, upper = upper, min(upper + _DAY, end)
    if ahead(upper) == before:
        return None
    while upper - begin > _SECOND:
        middle = begin + (upper - begin) // _SECOND // 2 * _SECOND
        begin, upper = (middle, upper) if ahead(middle) == before else (begin, middle)
    return upper.astimezone(UTC)


def _next_at_fixed_offset(schedule: Schedule, at: datetime, limit: datetime) -> datetime | None:
    """Return the first matching time from `at` on, for a constant offset."""
    while at < limit:
        if at.month not in schedule.month.values or not _day_matches(schedule, at):
            at = at.replace(hour=0, minute=0, second=0) + _DAY
        elif at.hour not in schedule.hour.values:
            at = at.replace(minute=0, second=0) + timedelta(hours=1)
        elif at.minute not in schedule.minute.values:
            at = at.replace(second=0) + timedelta(minutes=1)
        elif at.second not in schedule.second.values:
            at += _SECOND
        else:
            return at
    return None


def _day_matches(schedule: Schedule, at: datetime) -> bool:
    dom, dow = at.day in schedule.dom.values, (at.isoweekday() % 7) in schedule.dow.values
    return (dom and dow) if schedule.dom.star or schedule.dow.star else (dom or dow)
