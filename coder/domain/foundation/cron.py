"""Cron lines as robfig/cron reads them, because agents and servers of this product do; one parser of fields for all.

Dialects: scripts (seconds first, day of week may be left out, descriptors and time zones allowed) and five fields.
Parsing returns sets, or raises CronError with the library's own text.

Not here: the narrower dialects (`schedules.py` in this package: weekly and daily ones; the Terraform provider's
`cron.py`: prebuild schedules), and the next run of a script (the agent's `cron.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from coder.base.duration import parse_duration
from coder.base.errors import CoderError
from coder.domain.foundation.numbers import decimal


class CronError(CoderError):
    """A line that is not a schedule."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_cron", message)


@dataclass(frozen=True, slots=True)
class Field:
    low: int
    high: int
    words: dict[str, int]


_MONTHS = {word: index for index, word in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DAYS = {word: index for index, word in enumerate("sun mon tue wed thu fri sat".split())}
SECOND = MINUTE = Field(0, 59, {})
HOUR = Field(0, 23, {})
DOM = Field(1, 31, {})
MONTH = Field(1, 12, _MONTHS)
DOW = Field(0, 6, _DAYS)
DOW_OR_SEVEN = Field(0, 7, _DAYS)
"""Day of week for readers other than robfig's that accept 7 for Sunday; taken modulo 7."""

_DESCRIPTORS = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_EVERY = "@every "
_SHORTEST = timedelta(seconds=1)
"""Minimum interval, from the library: shorter ones are rounded up to a second."""
_LONGEST = timedelta(microseconds=(1 << 63) // 1000)
"Go counts durations in nanoseconds, of 63 bits: 292 years."
_OUR_UNIT = re.compile("[0-9.]([dy])")
"""Units of durations that people write for us; Go has neither."""


@dataclass(frozen=True, slots=True)
class Times:
    """Parsed field: the matching values, and whether it was written as a star."""

    values: frozenset[int]
    star: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    second: Times
    minute: Times
    hour: Times
    dom: Times
    month: Times
    dow: Times
    zone: str | None = None
    """Zone named by the line; None for the reader's own."""


@dataclass(frozen=True, slots=True)
class Every:
    """Interval `@every 1h30m`, counted from the last run whatever the clock shows."""

    pause: timedelta


def parse_script_cron(spec: str) -> Schedule | Every:
    """Parse six fields, the last one optional. Raises CronError."""
    return _parse(spec, (SECOND, MINUTE, HOUR, DOM, MONTH, DOW), optional_dow=True)


def parse_standard_cron(spec: str) -> Schedule | Every:
    """Parse the usual five fields and descriptors. Raises CronError."""
    return _parse(spec, (MINUTE, HOUR, DOM, MONTH, DOW), optional_dow=False)


def _parse(spec: str, fields: tuple[Field, ...], *, optional_dow: bool) -> Schedule | Every:
    if not spec:
        raise CronError("empty spec string")
    zone = None
    if spec.startswith(("TZ=", "CRON_TZ=")):
        zone, spec = _split_zone(spec)
    if spec.startswith("@"):
        descriptor = _parse_descriptor(spec)
        return replace(descriptor, zone=zone) if isinstance(descriptor, Schedule) else descriptor
    words = spec.split()
    low = len(fields) - 1 if optional_dow else len(fields)
    if not low <= len(words) <= len(fields):
        expected = f"exactly {low}" if low == len(fields) else f"{low} to {len(fields)}"
        raise CronError(f"expected {expected} fields, found {len(words)}: [{' '.join(words)}]")
    if len(words) < len(fields):
        words.append("*")
    if len(fields) == 5:
        words, fields = ["0", *words], (SECOND, *fields)
    second, minute, hour, dom, month, dow = map(parse_field, words, fields)
    return Schedule(second, minute, hour, dom, month, dow, zone)


def _split_zone(spec: str) -> tuple[str, str]:
    head, _, rest = spec.partition(" ")
    zone = head.partition("=")[2]
    if not zone_exists(zone):
        raise CronError(f"provided bad location {zone}: unknown time zone {zone}")
    return zone, rest.strip()


def zone_exists(name: str) -> bool:
    """Return whether a time zone database knows the name ("" and "Local" count, as in Go)."""
    if name in {"", "UTC", "Local"}:
        return True
    import zoneinfo  # waiting agents need not load it

    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _parse_descriptor(spec: str) -> Schedule | Every:
    if spec in _DESCRIPTORS:
        return parse_script_cron(_DESCRIPTORS[spec])
    if spec.startswith(_EVERY):
        pause = _pause(spec, spec.removeprefix(_EVERY))
        return Every(max(_SHORTEST, timedelta(seconds=pause // _SHORTEST)))
    raise CronError(f"unrecognized descriptor: {spec}")


def _pause(spec: str, duration: str) -> timedelta:
    fault = f'failed to parse duration {spec}: time: invalid duration "{duration}"'
    try:
        pause = parse_duration(duration)
    except CoderError as problem:
        raise CronError(fault) from problem
    if unit := _OUR_UNIT.search(duration):
        raise CronError(f'failed to parse duration {spec}: time: unknown unit "{unit[1]}" in duration "{duration}"')
    if abs(pause) > _LONGEST:
        raise CronError(fault)
    return pause


def parse_field(text: str, field: Field) -> Times:
    """Parse a list of values and ranges; an empty item is skipped. Raises CronError."""
    values: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        span, is_star = _parse_range(part, field)
        values.update(span)
        star = star or is_star
    return Times(frozenset(values), star)


def _parse_range(part: str, field: Field) -> tuple[range, bool]:
    """Parse `*/5`, `7`, `7/2` (from 7 on), `1-5/2`."""
    span, *steps = part.split("/")
    ends = span.split("-")
    star = ends[0] in {"*", "?"}
    if star:
        first, last = field.low, field.high
    else:
        first = _number(ends[0], field.words)
        if len(ends) > 2:
            raise CronError(f"too many hyphens: {part}")
        last = _number(ends[1], field.words) if len(ends) == 2 else first
    if len(steps) > 1:
        raise CronError(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and len(ends) == 1:
        last = field.high
    fault = (
        f"beginning of range ({first}) below minimum ({field.low})"
        if first < field.low
        else f"end of range ({last}) above maximum ({field.high})"
        if last > field.high
        else f"beginning of range ({first}) beyond end of range ({last})"
        if first > last
        else "step of range should be a positive number"
        if step < 1
        else ""
    )
    if fault:
        raise CronError(f"{fault}: {part}")
    return range(first, last + 1, step), star and step <= 1


def _number(text: str, words: dict[str, int]) -> int:
    if text.lower() in words:
        return words[text.lower()]
    number = decimal(text[1:] if text[:1] in {"+", "-"} else text)
    if number is None:
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if text.startswith("-") and number:
        raise CronError(f"negative number (-{number}) not allowed: {text}")
    return number
