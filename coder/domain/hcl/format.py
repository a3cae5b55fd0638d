"""Go's format verbs as Terraform's `format` offers them."""

from __future__ import annotations

import re
from decimal import Decimal

from coder.domain.hcl.bounds import require_size
from coder.domain.hcl.values import EvaluationError, Value, number, to_bool, to_json, to_number, to_text

_MAX_WIDTH = 10_000
_VERB = re.compile(r"%(?:\[(\d+)\])?([-+ 0#]*)(\d+)?(?:\.(\d+))?(?:\[(\d+)\])?(.?)", re.DOTALL)


def go_format(pattern: str, arguments: tuple[Value, ...]) -> str:
    """Format `arguments`. Raises EvaluationError for too few or too many arguments and for values that do not match
    their verb."""
    used = 0
    highest = 0
    made = 0
    by_position = False

    def one(match: re.Match[str]) -> str:
        nonlocal used, highest, by_position, made
        first, flags, width, precision, second, verb = match.groups()
        if verb == "%":
            return "%"
        if not verb or verb not in "vtbdoxXeEfgGsq":
            raise EvaluationError(f"unsupported format verb {match.group(0)!r}")
        position = second or first
        by_position |= bool(position)
        used = int(position) if position else used + 1
        highest = max(highest, used)
        if not 1 <= used <= len(arguments):
            raise EvaluationError(f"not enough arguments for {match.group(0)!r}")
        text = _padded(_verb(verb, arguments[used - 1], flags, precision), flags, _bounded(width or "0"))
        made += len(text)
        require_size(made)
        return text

    text = _VERB.sub(one, pattern)
    if not by_position and highest < len(arguments):
        raise EvaluationError("too many arguments")
    return text


def _bounded(digits: str) -> int:
    """Return the width, or precision of a number, which may be written with any number of digits."""
    significant = digits.lstrip("0") or "0"
    return _MAX_WIDTH if len(significant) > len(str(_MAX_WIDTH)) else min(int(significant), _MAX_WIDTH)


def _cut(text: str, precision: str) -> str:
    """Truncate a text to its precision, which adds no characters and so has no bound."""
    significant = precision.lstrip("0") or "0"
    return text if len(significant) > len(str(len(text))) else text[: int(significant)]


def _verb(verb: str, value: Value, flags: str, precision: str | None) -> str:
    if verb == "v":
        if "#" in flags:
            return to_json(value)
        if value is None or isinstance(value, list | dict):
            return to_json(value)
        return to_text(value) if isinstance(value, bool | str) else _signed(_shortest(to_number(value)), flags)
    if verb == "t":
        return "true" if to_bool(value) else "false"
    if verb in "sq":
        text = to_text(value) if precision is None else _cut(to_text(value), precision)
        return to_json(text) if verb == "q" else text
    return _signed(_number(verb, to_number(value), flags, precision), flags)


_PREFIXES = {"b": "0b", "o": "0", "x": "0x", "X": "0X"}


def _number(verb: str, value: int | float, flags: str, precision: str | None) -> str:
    if verb in "bdoxX":
        whole = number(value)
        if not isinstance(whole, int):
            raise EvaluationError("an integer is required")
        text = format(abs(whole), verb)
        prefix = _PREFIXES.get(verb, "") if "#" in flags else ""
        return f"{'-' if whole < 0 else ''}{prefix}{text}"
    if verb in "gG" and precision is None:
        return _shortest(value).upper() if verb == "G" else _shortest(value)
    return format(float(value), f".{_bounded(precision)}{verb}" if precision else verb)


def _shortest(value: int | float) -> str:
    """Return all digits of a number, with an exponent below -4 or above 5."""
    exact = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    power = exact.adjusted()
    if exact == 0 or -4 <= power < 6:
        return to_text(value)
    mantissa = format(exact.scaleb(-power).normalize(), "f")
    return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _signed(text: str, flags: str) -> str:
    if text.startswith("-"):
        return text
    return ("+" if "+" in flags else " " if " " in flags else "") + text


def _padded(text: str, flags: str, width: int) -> str:
    if "-" in flags:
        return text.ljust(width)
    return text.zfill(width) if "0" in flags else text.rjust(width)
