"""Conversion of users' times of day to the API's cron line, and of time spans."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from coder.base.duration import parse_duration
from coder.base.errors import CoderError

_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*([aApP][mM])|(\d{1,2}):(\d{2})")
"9AM, 9:30am or 09:30; an hour without minutes requires am or pm."
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def parse_schedule(words: list[str]) -> str:
    """Convert `9:30AM [Mon-Fri] [Europe/Berlin]` to `CRON_TZ=Europe/Berlin 30 9 * * Mon-Fri`. Raise CoderError."""
    if not 1 <= len(words) <= 3:
        raise CoderError("schedule", "Schedule must be in the format <start-time> [day-of-week] [location]")
    match = _CLOCK.fullmatch(words[0])
    if not match:
        raise CoderError("schedule", "Start time must be in the format hh:mm[am|pm] or HH:MM")
    half = (match[3] or "").lower()
    hour, minute = int(match[1] or match[4]), int(match[2] or match[5] or 0)
    if (half and not 1 <= hour <= 12) or hour > 23 or minute > 59:
        raise CoderError("schedule", "Start time must be in the format hh:mm[am|pm] or HH:MM")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    days, zone = "*", ""
    for word in words[1:]:
        if _is_days(word):
            days = word
        else:
            zone = word
    return f"CRON_TZ={zone or _local_zone()} {minute} {hour} * * {days}"


def parse_time_span(text: str) -> timedelta:
    """Return a time span, in minutes if it has no unit, as upstream. Raise CoderError."""
    return parse_duration(f"{text}m" if re.fullmatch(r"[0-9]+", text) else text)


def _is_days(word: str) -> bool:
    parts = re.split(r"[-,]", word.lower())
    return word == "*" or all(part[:3] in _DAYS or part.isdigit() for part in parts)


def _local_zone() -> str:
    try:
        target = str(Path("/etc/localtime").resolve())
    except OSError:
        return "UTC"
    _, marker, zone = target.partition("zoneinfo/")
    return zone if marker and datetime.now().astimezone().tzinfo else "UTC"
