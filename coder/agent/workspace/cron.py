"""When a cron line runs next: `[sec] min hour dom month dow`, descriptors, and Go-cron's `@every`.

Five fields mean minute precision. As in the Vixie tradition, a day matches when either day field does, unless one of
them is `*`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from coder.base.duration import parse_duration
from coder.base.errors import CoderError

_MONTHS = {name: index for index, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DAYS = {name: index for index, name in enumerate("sun mon tue wed thu fri sat".split())}
_BOUNDS = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_DESCRIPTORS = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_HORIZON = timedelta(days=366 * 5)
"Five years: the longest gap of a valid line (29 February on a leap year) plus slack."


def next_run(line: str, after: datetime) -> datetime | None:
    """The first time after `after` (aware), in its zone; None when there is none. Raises CoderError `bad_cron`."""
    text = line.strip()
    if text.startswith("@every "):
        return after + parse_duration(text[7:])
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) == 5:
        fields = ["0", *fields]
    if len(fields) != 6:
        raise CoderError("bad_cron", f"{line!r} is not a cron line", "Write: second minute hour day month weekday.")
    seconds, minutes, hours, days, months, weekdays = (_field(text, index) for index, text in enumerate(fields))
    any_day = fields[3] in {"*", "?"} or fields[5] in {"*", "?"}

    def day_matches(at: datetime) -> bool:
        dom, dow = at.day in days, (at.isoweekday() % 7) in weekdays
        return (dom and dow) if any_day else (dom or dow)

    at = after.replace(microsecond=0) + timedelta(seconds=1)
    limit = after + _HORIZON
    while at < limit:
        if at.month not in months or not day_matches(at):
            at = at.replace(hour=0, minute=0, second=0) + timedelta(days=1)
        elif at.hour not in hours:
            at = at.replace(minute=0, second=0) + timedelta(hours=1)
        elif at.minute not in minutes:
            at = at.replace(second=0) + timedelta(minutes=1)
        elif at.second not in seconds:
            at += timedelta(seconds=1)
        else:
            return at
    return None


def _field(text: str, index: int) -> set[int]:
    low, high = _BOUNDS[index]
    found: set[int] = set()
    for part in text.lower().split(","):
        body, slash, step_text = part.partition("/")
        first, dash, last = body.partition("-")
        if body in {"*", "?"}:
            start, end = low, high
        else:
            start = _number(first, index)
            end = _number(last, index) if dash else (high if slash else start)
        step = int(step_text) if slash and step_text.isdigit() else 1
        if not (low <= start <= end <= high) or step < 1:
            raise CoderError("bad_cron", f"{text!r} is out of range", f"Allowed are {low} to {high}.")
        found.update(range(start, end + 1, step))
    return found


def _number(text: str, index: int) -> int:
    names = _MONTHS if index == 4 else _DAYS if index == 5 else {}
    if text in names:
        return names[text]
    if not text.isdigit():
        raise CoderError("bad_cron", f"{text!r} is not a number", "")
    return 0 if index == 5 and text == "7" else int(text)
