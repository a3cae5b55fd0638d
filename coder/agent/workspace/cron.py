"""When a script's cron line runs next. How a line is read is the domain's `cron.py`: seconds first.

As in the Vixie tradition, a day matches when either day field does, unless one of them is `*`; and what runs every hour
goes on through a change of the clock, what has hours of its own runs once: in an hour that is left out a while later,
in one that comes twice the first time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

from coder.domain.foundation.cron import Every, Schedule, parse_script_cron

_HORIZON = timedelta(days=366 * 5)
"Five years: the longest gap of a valid line (29 February on a leap year) plus slack."
_HOURS = 24
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)
_Clock = Callable[[datetime], timedelta]
"How far it is ahead of UTC, by the time; it is put forward or back between two of them."


def next_run(line: str, after: datetime) -> datetime | None:
    """The first time after `after` (aware), in its zone or the line's own; None when there is none.

    Raises CronError.
    """
    schedule = parse_script_cron(line.strip())
    if isinstance(schedule, Every):
        return after + schedule.pause
    if not all(field.values for field in (schedule.second, schedule.minute, schedule.hour)):
        return None  # `,` is a list of nothing
    ahead, limit = _clock(schedule.zone, after), after + _HORIZON
    at = after.astimezone(UTC).replace(microsecond=0) + _SECOND
    while True:
        # As if the clock stayed as it is now; and then from where it does not.
        zone = timezone(ahead(at))
        found = _by_a_steady_clock(schedule, at.astimezone(zone), limit)
        change = found and _first_change(ahead, at, found)
        if found is None or change is None:
            return found
        step = ahead(change) - ahead(at)
        if len(schedule.hour.values) == _HOURS:
            at = change
        elif found - change < step:
            return found  # no clock shows it
        else:
            at = change + max(-step, timedelta())


def _clock(name: str | None, after: datetime) -> _Clock:
    """The clock of a zone; of this machine without a name, if `after` is its time."""
    if name in {"", "UTC"}:  # which need no database of zones
        return lambda _: timedelta()
    if name is not None and name != "Local":
        from zoneinfo import ZoneInfo  # few lines name one, and it looks at how this Python was configured

        zone = ZoneInfo(name)
        return lambda at: at.astimezone(zone).utcoffset() or timedelta()
    steady = after.utcoffset() or timedelta()
    if after.astimezone().utcoffset() != steady:
        return lambda _: steady
    return lambda at: at.astimezone().utcoffset() or timedelta()


def _first_change(ahead: _Clock, begin: datetime, end: datetime) -> datetime | None:
    """The first second by which the clock has been changed, up to `end`."""
    before, late = ahead(begin), begin
    while late < end and ahead(late) == before:  # no change is taken back within a day
        begin, late = late, min(late + _DAY, end)
    if ahead(late) == before:
        return None
    while late - begin > _SECOND:
        middle = begin + (late - begin) // _SECOND // 2 * _SECOND
        begin, late = (middle, late) if ahead(middle) == before else (begin, middle)
    return late.astimezone(UTC)


def _by_a_steady_clock(schedule: Schedule, at: datetime, limit: datetime) -> datetime | None:
    """The first time from `at` on."""
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
