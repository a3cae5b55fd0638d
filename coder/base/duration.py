"""Durations in the form of Go programs: `1h30m`, `250ms`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

from coder.base.errors import CoderError
from coder.base.quoted import quoted

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "y": 31536000.0,
}
_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ns|us|µs|ms|s|m|h|d|y)")
_WHOLE = re.compile(r"(?:(?:\d++(?:\.\d++)?|\.\d++)(?:ns|us|µs|ms|s|m|h|d|y))+")
"Checked first: a search for parts in five thousand digits took half a second."


def parse_duration(text: str) -> timedelta:
    """Parse a Go-style duration; `d` (24 h) and `y` (365 d) are accepted too, a bare `0` is zero.

    Raises CoderError `bad_duration`.
    """
    body = text.strip()
    sign = -1 if body.startswith("-") else 1
    body = body.lstrip("+-")
    if body == "0":
        return timedelta()
    parts = _PART.findall(body) if _WHOLE.fullmatch(body) else []
    if not parts:
        raise CoderError("bad_duration", f"{quoted(text)} is not a duration", 'Write it like "1h30m", "45s" or "7d".')
    try:
        return timedelta(seconds=sign * sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError as error:
        raise CoderError("bad_duration", f"{quoted(text)} is too long", "Write a shorter one.") from error


def from_nanoseconds(value: int) -> timedelta:
    """Convert Go nanoseconds. A value below one microsecond becomes the smallest step: only 0 means zero.

    Raises CoderError `bad_duration`.
    """
    try:
        duration = timedelta(microseconds=value / 1000)
    except OverflowError as error:
        raise CoderError("bad_duration", f"{value} ns is too long", "Write a shorter one.") from error
    if duration or not value:
        return duration
    return timedelta(microseconds=1 if value > 0 else -1)


def format_duration(value: timedelta) -> str:
    """Format like Go's `Duration.String()` for whole seconds and above, e.g. `1h30m0s`; milliseconds below a second."""
    seconds = value.total_seconds()
    if seconds == 0:
        return "0s"
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, secs = divmod(rest, 60)
    text = f"{int(hours)}h" if hours else ""
    text += f"{int(minutes)}m" if hours or minutes else ""
    return f"{sign}{text}{secs:g}s"
