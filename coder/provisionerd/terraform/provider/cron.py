"""Cron lines as robfig/cron reads them, because agents and servers of this product do.

Two dialects: scripts (seconds first, day of week may be left out, descriptors and time zones allowed) and prebuild
schedules (five fields, the minute always `*`). Parsing answers with a `Schedule` of sets, or raises CronError whose
text is the library's own sentence. When a schedule fires next is not asked here.
"""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass

from coder.base.duration import parse_duration
from coder.base.errors import CoderError


class CronError(CoderError):
    """A line that is no schedule."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_cron", message)


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    low: int
    high: int
    words: dict[str, int]


_MONTHS = {word: index for index, word in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DAYS = {word: index for index, word in enumerate("sun mon tue wed thu fri sat".split())}
_SECOND = Field("second", 0, 59, {})
_MINUTE = Field("minute", 0, 59, {})
_HOUR = Field("hour", 0, 23, {})
_DOM = Field("dom", 1, 31, {})
_MONTH = Field("month", 1, 12, _MONTHS)
_DOW = Field("dow", 0, 6, _DAYS)

_DESCRIPTORS = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}


@dataclass(frozen=True, slots=True)
class Times:
    """One field: which values match, and whether it was written as a star."""

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


def parse_script_cron(spec: str) -> Schedule | None:
    """Six fields, the last one optional; None for `@every`, which has no fields. Raises CronError."""
    return _parse(spec, (_SECOND, _MINUTE, _HOUR, _DOM, _MONTH, _DOW), optional_dow=True)


def parse_standard_cron(spec: str) -> Schedule | None:
    """The usual five fields and descriptors. Raises CronError."""
    return _parse(spec, (_MINUTE, _HOUR, _DOM, _MONTH, _DOW), optional_dow=False)


def _parse(spec: str, fields: tuple[Field, ...], *, optional_dow: bool) -> Schedule | None:
    if not spec:
        raise CronError("empty spec string")
    if spec.startswith(("TZ=", "CRON_TZ=")):
        spec = _without_zone(spec)
    if spec.startswith("@"):
        return _parse_descriptor(spec)
    words = spec.split()
    low = len(fields) - 1 if optional_dow else len(fields)
    if not low <= len(words) <= len(fields):
        wanted = f"exactly {low}" if low == len(fields) else f"{low} to {len(fields)}"
        raise CronError(f"expected {wanted} fields, found {len(words)}: [{' '.join(words)}]")
    if len(words) < len(fields):
        words.append("*")
    if len(fields) == 5:
        words, fields = ["0", *words], (_SECOND, *fields)
    return Schedule(*(_parse_field(word, field) for word, field in zip(words, fields, strict=True)))


def _without_zone(spec: str) -> str:
    head, _, rest = spec.partition(" ")
    zone = head.partition("=")[2]
    if not zone_exists(zone):
        raise CronError(f"provided bad location {zone}: unknown time zone {zone}")
    return rest.strip()


def zone_exists(name: str) -> bool:
    """Whether a time zone database knows the name ("" and "Local" count, as in Go)."""
    if name in {"", "UTC", "Local"}:
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _parse_descriptor(spec: str) -> Schedule | None:
    if spec in _DESCRIPTORS:
        return parse_script_cron(_DESCRIPTORS[spec])
    if spec.startswith("@every "):
        duration = spec.removeprefix("@every ")
        try:
            parse_duration(duration)
        except CoderError as problem:
            raise CronError(f'failed to parse duration {spec}: time: invalid duration "{duration}"') from problem
        return None
    raise CronError(f"unrecognized descriptor: {spec}")


def _parse_field(text: str, field: Field) -> Times:
    values: set[int] = set()
    star = False
    for part in text.split(","):
        if not part:
            continue
        span, is_star = _parse_range(part, field)
        values.update(span)
        star = star or is_star
    return Times(frozenset(values), star)


def _parse_range(text: str, field: Field) -> tuple[range, bool]:
    range_and_step = text.split("/")
    low_and_high = range_and_step[0].split("-")
    star = low_and_high[0] in {"*", "?"}
    if star:
        low, high = field.low, field.high
    else:
        low = _number_or_name(low_and_high[0], field)
        if len(low_and_high) > 2:
            raise CronError(f"too many hyphens: {text}")
        high = _number_or_name(low_and_high[1], field) if len(low_and_high) == 2 else low
    if len(range_and_step) > 2:
        raise CronError(f"too many slashes: {text}")
    step = 1
    if len(range_and_step) == 2:
        step = _number(range_and_step[1])
        if len(low_and_high) == 1:
            high = field.high  # "N/step" means "N-max/step"
        if step > 1:
            star = False
    if low < field.low:
        raise CronError(f"beginning of range ({low}) below minimum ({field.low}): {text}")
    if high > field.high:
        raise CronError(f"end of range ({high}) above maximum ({field.high}): {text}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")
    return range(low, high + 1, step), star


def _number_or_name(text: str, field: Field) -> int:
    named = field.words.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    try:
        value = int(text) if text.lstrip("+-").isdigit() and text.isascii() else None
    except ValueError:
        value = None
    if value is None:
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if value < 0:
        raise CronError(f"negative number ({value}) not allowed: {text}")
    return value


# --- prebuild schedules
def prebuild_cron_problem(spec: str) -> str:
    """Why a line cannot be a prebuild schedule; "" when it can."""
    words = spec.split()
    if len(words) != 5:
        return "cron spec failed validation: cron specification should consist of 5 fields"
    if words[0] != "*":
        return "cron spec failed validation: minute field should be *"
    try:
        parse_standard_cron(spec)
    except CronError as problem:
        return f"failed to parse cron spec: {problem.message}"
    return ""


def overlap(left: str, right: str) -> bool:
    """Whether two prebuild schedules have a moment in common (valid lines only).

    Months and hours must meet, and a day must: a star in one of day-of-month and day-of-week leaves the decision to
    the other, where both are restricted either suffices.
    """
    a, b = parse_standard_cron(left), parse_standard_cron(right)
    if a is None or b is None:
        return False
    if not (a.month.values & b.month.values and a.hour.values & b.hour.values):
        return False
    return _days_meet(a, b)


def _days_meet(a: Schedule, b: Schedule) -> bool:
    if a.dom.star or b.dom.star:
        return bool(a.dow.values & b.dow.values)
    if a.dow.star or b.dow.star:
        return bool(a.dom.values & b.dom.values)
    return bool(a.dom.values & b.dom.values) or bool(a.dow.values & b.dow.values)
