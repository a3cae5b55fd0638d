"""Validation of flag values, with the error texts of Go programs.

Pure functions, one per kind, in one table; `base/text_faults.py` has those for text kinds. The messages are those of
Go's strconv and time packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from coder.base import text_faults
from coder.base.config import LIST_KINDS, Option
from coder.base.duration import parse_duration
from coder.base.errors import CoderError

_BOOLS = frozenset({"1", "t", "true", "yes", "on", "0", "f", "false", "no", "off", ""})
_INT64 = 1 << 63
_DURATION = re.compile(r"[+-]?(?:(?:\d++\.?\d*+|\.\d++)[^\d.\s]++)*+(?:\d++\.?\d*|\.\d+)")


def fault(option: Option, value: str) -> str:
    """Return what is wrong with the value; "" if it is valid."""
    if option.choices:
        words = value.split(",") if option.kind in LIST_KINDS else [value]
        known = {choice.lower() for choice in option.choices}
        invalid = [word.strip() for word in words if word.strip().lower() not in known]
        listed = " ".join(option.choices)
        return f"invalid choice: {invalid[0]}, should be one of [{listed}]" if invalid else ""
    check = _FAULTS.get(option.kind)
    return check(value) if check else ""


def _duration(value: str) -> str:
    try:
        parse_duration(value)
    except CoderError:
        if value.strip() and _DURATION.fullmatch(value):
            return f'time: missing unit in duration "{value}"'
        return f'time: invalid duration "{value}"'
    return ""


def _int(value: str) -> str:
    digits = value[1:] if value[:1] in {"+", "-"} else value
    if not (digits.isascii() and digits.isdigit()):
        return f'strconv.ParseInt: parsing "{value}": invalid syntax'
    # A 64-bit number has at most 19 digits: longer texts are not converted.
    number = int(digits.lstrip("0")[:20] or "0") * (-1 if value.startswith("-") else 1)
    return "" if -_INT64 <= number < _INT64 else f'strconv.ParseInt: parsing "{value}": value out of range'


def _bool(value: str) -> str:
    return "" if value.lower() in _BOOLS else f'strconv.ParseBool: parsing "{value}": invalid syntax'


_FAULTS: dict[str, Callable[[str], str]] = {
    "bool": _bool,
    "duration": _duration,
    "int": _int,
    **text_faults.FAULTS,
}
