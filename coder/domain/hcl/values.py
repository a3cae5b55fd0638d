"""Values of template expressions, and how they turn into one another.

A value is None, bool, int, float, str, list, SetValue, dict, UNKNOWN (some value of a known type, later) or UNTYPED
(nothing is known about it). Conversions follow Terraform's.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any, Final

from coder.base.errors import CoderError


class EvaluationError(CoderError):
    """An expression that has no value. `try` and `can` catch it."""

    def __init__(self, message: str) -> None:
        super().__init__("evaluation", message)


class _Unknown:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNKNOWN: Final = _Unknown("UNKNOWN")
UNTYPED: Final = _Unknown("UNTYPED")

Value = Any


class SetValue(list[Value]):
    """Distinct values in a steady order; not to be indexed."""

    @staticmethod
    def of(items: list[Value]) -> SetValue:
        found: list[Value] = []
        for item in items:
            if item not in found:
                found.append(item)
        return SetValue(sorted(found, key=_order))


def _order(value: Value) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 0, value
    if isinstance(value, int | float):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, json.dumps(value, sort_keys=True, default=str))


def is_unknown(value: Value) -> bool:
    return value is UNKNOWN or value is UNTYPED


def has_unknown(value: Value) -> bool:
    """Whether any part is unknown."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return is_unknown(value)


def number(value: int | float) -> int | float:
    """Whole numbers are ints, whatever they were computed from."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_text(value: Value) -> str:
    """Raises EvaluationError for what cannot be text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        # Never with an exponent; 15 digits, since the last ones of a float are noise of computing.
        return format(Decimal(format(value, ".15g")), "f") if value != int(value) else str(int(value))
    raise EvaluationError(f"a string is required, not {type_name(value)}")


def to_number(value: Value) -> int | float:
    if isinstance(value, bool):
        raise EvaluationError("a number is required, not bool")
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            try:
                return number(float(value))
            except (ValueError, OverflowError):
                pass
    raise EvaluationError(f"a number is required, not {type_name(value)}")


def to_bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "1"):
        return True
    if value in ("false", "0"):
        return False
    raise EvaluationError(f"a bool is required, not {type_name(value)}")


def type_name(value: Value) -> str:
    """As Terraform names it in messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, SetValue):
        return "set"
    if isinstance(value, list):
        return "tuple"
    return "object" if isinstance(value, dict) else "dynamic"


def to_json(value: Value) -> str:
    """As jsonencode writes it: keys sorted, HTML characters escaped."""
    text = json.dumps(_plain(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _plain(value: Value) -> Value:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return number(value) if isinstance(value, float) else value
