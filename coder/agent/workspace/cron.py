"""When a script's cron line runs next. How a line is read is the domain's `cron.py`: seconds first.

As in the Vixie tradition, a day matches when either day field does, unless one of them is `*`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from coder.domain.foundation.cron import Every, Schedule, parse_script_cron

_HORIZON = timedelta(days=366 * 5)
"Five years: the longest gap of a valid line (29 February on a leap year) plus slack."


def next_run(line: str, after: datetime) -> datetime | None:
    """The first time after `after` (aware), in its zone or the line's own; None when there is none.

    Raises CronError.
    """
    schedule = parse_script_cron(line.strip())
    if isinstance(schedule, Every):
        return after + schedule.pause
    if schedule.zone is not None and schedule.zone != "Local":
        after = after.astimezone(_zone(schedule.zone))
    if not all(field.values for field in (schedule.second, schedule.minute, schedule.hour)):
        return None  # `,` is a list of nothing
    at = after.replace(microsecond=0) + timedelta(seconds=1)
    limit = after + _HORIZON
    while at < limit:
        if at.month not in schedule.month.values or not _day_matches(schedule, at):
            at = at.replace(hour=0, minute=0, second=0) + timedelta(days=1)
        elif at.hour not in schedule.hour.values:
            at = at.replace(minute=0, second=0) + timedelta(hours=1)
        elif at.minute not in schedule.minute.values:
            at = at.replace(second=0) + timedelta(minutes=1)
        elif at.second not in schedule.second.values:
            at += timedelta(seconds=1)
        else:
            return _as_shown(at, after) if schedule.zone is None else at
    return None


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # which loads sysconfig and all it knows; few lines name a zone

    return ZoneInfo(name) if name else UTC


def _as_shown(at: datetime, after: datetime) -> datetime:
    """When this machine's clock shows that, where `after` is its time: it may be put forward or back until then."""
    shown = at.replace(tzinfo=None).astimezone()
    here = after.utcoffset() == after.replace(tzinfo=None).astimezone().utcoffset()
    # In the hour that is doubled it showed the same an hour ago.
    return shown if here and shown > after else at


def _day_matches(schedule: Schedule, at: datetime) -> bool:
    dom, dow = at.day in schedule.dom.values, (at.isoweekday() % 7) in schedule.dow.values
    return (dom and dow) if schedule.dom.star or schedule.dow.star else (dom or dow)
