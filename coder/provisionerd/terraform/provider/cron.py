"""Prebuild schedules: five fields of cron, the minute always `*`. The domain's `cron.py` parses the line."""

from __future__ import annotations

from coder.domain.foundation.cron import CronError, Schedule, parse_standard_cron


def prebuild_cron_problem(spec: str) -> str:
    """Return the reason why a line is not a prebuild schedule; "" when it is valid."""
    fields = spec.split()
    if len(fields) != 5:
        return "cron spec failed validation: cron specification should consist of 5 fields"
    if fields[0] != "*":
        return "cron spec failed validation: minute field should be *"
    try:
        parse_standard_cron(spec)
    except CronError as error:
        return f"failed to parse cron spec: {error.message}"
    return ""


def overlap(left: str, right: str) -> bool:
    """Return whether two prebuild schedules have a common moment (valid lines only).

    Months and hours must overlap, and a day must. When one of day-of-month and day-of-week is a star, the other
    decides; where both are restricted, either suffices.
    """
    a, b = parse_standard_cron(left), parse_standard_cron(right)
    if not (isinstance(a, Schedule) and isinstance(b, Schedule)):
        return False
    if not (a.month.values & b.month.values and a.hour.values & b.hour.values):
        return False
    return _days_overlap(a, b)


def _days_overlap(a: Schedule, b: Schedule) -> bool:
    if a.dom.star or b.dom.star:
        return bool(a.dow.values & b.dow.values)
    if a.dow.star or b.dow.star:
        return bool(a.dom.values & b.dom.values)
    return bool(a.dom.values & b.dom.values) or bool(a.dow.values & b.dow.values)
