"""Go's format verbs as Terraform's `format` offers them."""

from __future__ import annotations

import re

from coder.domain.hcl.values import EvaluationError, Value, number, to_bool, to_json, to_number, to_text

_MAX_WIDTH = 10_000
_VERB = re.compile(r"%(?:\[(\d+)\])?([-+ 0#]*)(\d+)?(?:\.(\d+))?([vtbdoxXeEfgGsq%])")


def go_format(pattern: str, arguments: tuple[Value, ...]) -> str:
    """Raises EvaluationError for too few arguments and for values that do not fit their verb."""
    used = 0

    def one(match: re.Match[str]) -> str:
        nonlocal used
        position, flags, width, precision, verb = match.groups()
        if verb == "%":
            return "%"
        used = int(position) if position else used + 1
        if not 1 <= used <= len(arguments):
            raise EvaluationError(f"not enough arguments for {match.group(0)!r}")
        text = _verb(verb, arguments[used - 1], flags, precision)
        return _padded(text, flags, min(int(width or 0), _MAX_WIDTH), verb)

    return _VERB.sub(one, pattern)


def _verb(verb: str, value: Value, flags: str, precision: str | None) -> str:
    if verb == "v":
        return "null" if value is None else to_json(value) if isinstance(value, list | dict) else to_text(value)
    if verb == "t":
        return "true" if to_bool(value) else "false"
    if verb in "sq":
        text = to_text(value) if precision is None else to_text(value)[: int(precision)]
        return to_json(text) if verb == "q" else text
    return _signed(_number(verb, to_number(value), precision), flags)


def _number(verb: str, value: int | float, precision: str | None) -> str:
    if verb in "bdoxX":
        whole = number(value)
        if not isinstance(whole, int):
            raise EvaluationError("an integer is required")
        return format(whole, verb)
    text = format(float(value), f".{precision}{verb}" if precision else verb)
    if verb in "gG" and precision is None:
        small = 0 < abs(value) < 1e-4  # Go turns to exponents there, and writes them as Python does
        text = repr(float(value)) if small else to_text(number(float(value)))
    return text


def _signed(text: str, flags: str) -> str:
    if text.startswith("-"):
        return text
    return ("+" if "+" in flags else " " if " " in flags else "") + text


def _padded(text: str, flags: str, width: int, verb: str) -> str:
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and verb not in "svq":
        return text.zfill(width)
    return text.rjust(width)
