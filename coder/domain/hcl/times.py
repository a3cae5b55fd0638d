"""Terraform's time functions: formatdate, timeadd, timecmp. Texts are RFC 3339, as Terraform writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from coder.base.duration import parse_duration
from coder.base.errors import CoderError
from coder.domain.hcl.values import EvaluationError, Value, to_text

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

_DURATION = re.compile(r"[-+]?(0|((\d+(\.\d+)?|\.\d+)(ns|us|µs|ms|s|m|h))+)", re.ASCII)


def _time(text: Value) -> datetime:
    written = to_text(text)
    if not _MOMENT.fullmatch(written):
        raise EvaluationError("not a valid RFC 3339 timestamp")
    return datetime.fromisoformat(written)


def _timeadd(moment: Value, duration: Value) -> str:
    written = to_text(duration)
    if not _DURATION.fullmatch(written):
        raise EvaluationError(f"invalid duration {written!r}")
    try:
        added = parse_duration(written)
    except CoderError as error:  # longer than ten thousand years
        raise EvaluationError(error.message) from error
    return (_time(moment) + added).isoformat().replace("+00:00", "Z")


def _timecmp(a: Value, b: Value) -> int:
    first, second = _time(a).astimezone(UTC), _time(b).astimezone(UTC)
    return (first > second) - (first < second)


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _offset(at: datetime, colon: str) -> str:
    minutes = int((at.utcoffset() or timedelta()).total_seconds() // 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}{colon}{abs(minutes) % 60:02d}"


_PARTS: dict[str, Callable[[datetime], str]] = {
    "YYYY": lambda at: f"{at.year:04d}",
    "YY": lambda at: f"{at.year % 100:02d}",
    "MMMM": lambda at: _MONTHS[at.month - 1],
    "MMM": lambda at: _MONTHS[at.month - 1][:3],
    "MM": lambda at: f"{at.month:02d}",
    "M": lambda at: str(at.month),
    "DD": lambda at: f"{at.day:02d}",
    "D": lambda at: str(at.day),
    "EEEE": lambda at: _DAYS[at.weekday()],
    "EEE": lambda at: _DAYS[at.weekday()][:3],
    "hh": lambda at: f"{at.hour:02d}",
    "h": lambda at: str(at.hour),
    "HH": lambda at: f"{(at.hour + 11) % 12 + 1:02d}",
    "H": lambda at: str((at.hour + 11) % 12 + 1),
    "AA": lambda at: "AM" if at.hour < 12 else "PM",
    "aa": lambda at: "am" if at.hour < 12 else "pm",
    "mm": lambda at: f"{at.minute:02d}",
    "m": lambda at: str(at.minute),
    "ss": lambda at: f"{at.second:02d}",
    "s": lambda at: str(at.second),
    "ZZZZZ": lambda at: _offset(at, ":"),
    "ZZZZ": lambda at: _offset(at, ""),
    "ZZZ": lambda at: _offset(at, "") if at.utcoffset() else "UTC",
    "Z": lambda at: _offset(at, ":") if at.utcoffset() else "Z",
}
_PIECE = re.compile(r"'(?:[^']|'')*'|'|([A-Za-z])\1*|[^A-Za-z']+")


def _formatdate(pattern: Value, moment: Value) -> str:
    """Format a time: letters are its parts, literal text is quoted. Raises EvaluationError for unknown letters."""
    at = _time(moment)
    results: list[str] = []
    for match in _PIECE.finditer(to_text(pattern)):
        piece = match[0]
        if piece in _PARTS:
            results.append(_PARTS[piece](at))
        elif piece.startswith("'") and len(piece) > 1:
            results.append(piece[1:-1].replace("''", "'"))
        elif match[1] or piece == "'":
            raise EvaluationError(f"invalid date format {piece!r}")
        else:
            results.append(piece)
    return "".join(results)


TIMES: dict[str, Callable[[Value, Value], Value]] = {
    "formatdate": _formatdate,
    "timeadd": _timeadd,
    "timecmp": _timecmp,
}
