"""Values of template expressions, and their conversions.

A value is None, bool, int, float, str, list, SetValue, dict, UNKNOWN (some value of a known type, later) or UNTYPED
(nothing is known about it). Conversions follow Terraform's.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Never, Protocol, TypeAlias

from coder.base.errors import CoderError


class EvaluationError(CoderError):
    """An expression without a value. `try` and `can` catch it."""

    def __init__(self, message: str) -> None:
        super().__init__("evaluation", message)


class _Unknown:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


class Namespace(ABC):
    """Value whose attributes are computed when an expression asks for them."""

    @abstractmethod
    def member(self, name: str) -> Value:
        """Return the attribute. Raises EvaluationError for an unknown one."""


UNKNOWN: Final = _Unknown("UNKNOWN")
UNTYPED: Final = _Unknown("UNTYPED")

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value] | Namespace | _Unknown | None"


class Function(Protocol):
    def __call__(self, *arguments: Value) -> Value:
        """Return the value of a call. Raises TypeError for a wrong number or kind of arguments."""


TableFunction = Callable[[Never], Value] | Callable[[Never, Never], Value] | Callable[[Never, Never, Never], Value]
"""Function with the parameters it declares. An expression may call it with others (`function_table`)."""


class SetValue(list[Value]):
    """Distinct values in a stable order; cannot be indexed."""

    @staticmethod
    def of(items: list[Value]) -> SetValue:
        return SetValue(sorted(distinct(items), key=_order))


def distinct(items: Iterable[Value]) -> list[Value]:
    """Return the items without repetitions, in order, in linear time."""
    results: dict[Hashable, Value] = {}
    for item in items:
        results.setdefault(identity(item), item)
    return list(results.values())


def identity(value: Value) -> Hashable:
    """Return a key that is equal for equal values, and only for those."""
    if isinstance(value, list):
        return "list", *map(identity, value)
    if isinstance(value, dict):
        return "object", frozenset((key, identity(item)) for key, item in value.items())
    return value


def _order(value: Value) -> tuple[int, int | float | str]:
    if isinstance(value, bool):
        return 0, value
    if isinstance(value, int | float):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, json.dumps(value, sort_keys=True, default=str))


def is_unknown(value: Value) -> bool:
    return value is UNKNOWN or value is UNTYPED


def has_unknown(value: Value) -> bool:
    """Return whether any part is unknown."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return is_unknown(value)


def unify(items: list[Value]) -> list[Value]:
    """Convert the items to their common type: next to text, numbers and bools become text. Nulls and unknown stay.

    Raises EvaluationError when there is no such type.
    """
    known = [item for item in items if item is not None and not is_unknown(item)]
    kinds = {_kind(item) for item in known}
    if "dynamic" in kinds or (len(kinds) < 2 and not kinds & {"list", "object"}):
        return items
    if kinds == {"list"}:
        return _unified_lists(items)
    if kinds == {"object"}:
        return _unified_objects(items)
    if "string" in kinds and kinds <= {"string", "number", "bool"}:
        return [item if item is None or is_unknown(item) else to_text(item) for item in items]
    raise EvaluationError(f"values of different types: {', '.join(sorted(kinds))}")


def _kind(value: Value) -> str:
    if isinstance(value, list):
        return "list"
    return type_name(value)


def _unified_lists(items: list[Value]) -> list[Value]:
    lists = [item for item in items if isinstance(item, list)]
    if len({len(item) for item in lists}) == 1 and not any(isinstance(item, SetValue) for item in lists):
        columns = [unify(list(column)) for column in zip(*lists, strict=True)]
        rows = iter([list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in lists])
    else:
        flat = iter(unify([item for element in lists for item in element]))
        rows = iter([type(item)(next(flat) for _ in item) for item in lists])
    return [next(rows) if isinstance(item, list) else item for item in items]


def _unified_objects(items: list[Value]) -> list[Value]:
    objects = [item for item in items if isinstance(item, dict)]
    if len({frozenset(item) for item in objects}) == 1:
        columns = {key: iter(unify([item[key] for item in objects])) for key in objects[0]}
        rows = iter([{key: next(columns[key]) for key in item} for item in objects])
    else:
        flat = iter(unify([item for element in objects for item in element.values()]))
        rows = iter([{key: next(flat) for key in item} for item in objects])
    return [next(rows) if isinstance(item, dict) else item for item in items]


OUT_OF_RANGE = "the number is out of range"


def number(value: int | float) -> int | float:
    """Convert to a number; whole numbers are ints however they were computed. Raises EvaluationError for other
    values."""
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationError(OUT_OF_RANGE)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_text(value: Value) -> str:
    """Convert to text. Raises EvaluationError if the value cannot be text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        # Never with an exponent; 15 digits, since the last digits of a float are rounding noise.
        return format(Decimal(format(value, ".15g")), "f") if value != int(value) else str(int(value))
    raise EvaluationError(f"a string is required, not {type_name(value)}")


def to_number(value: Value) -> int | float:
    if isinstance(value, bool):
        raise EvaluationError("a number is required, not bool")
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):  # a literal that floats cannot hold: an expression that uses it has no value
            raise EvaluationError(OUT_OF_RANGE)
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return read_number(value)
    raise EvaluationError(f"a number is required, not {type_name(value)}")


_NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?", re.ASCII)
_MAX_EXPONENT = 400
"""Ours: beyond this exponent a number is not written out digit by digit."""


def read_number(text: str) -> int | float:
    """Parse a decimal number; whole ones are exact, however large. Raises EvaluationError for one out of range."""
    try:
        exact = Decimal(text)
        if exact == exact.to_integral_value() and abs(exact.adjusted()) <= _MAX_EXPONENT:
            return int(exact)
        result = float(exact)
    except (ArithmeticError, ValueError, OverflowError) as problem:
        raise EvaluationError(OUT_OF_RANGE) from problem
    if not math.isfinite(result):
        raise EvaluationError(OUT_OF_RANGE)
    return result


def to_bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "1"):
        return True
    if value in ("false", "0"):
        return False
    raise EvaluationError(f"a bool is required, not {type_name(value)}")


_HALF = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """Replace each lone surrogate with U+FFFD, as Go does."""
    return _HALF.sub("\ufffd", text)


def well_formed(value: Value) -> Value:
    """Replace each lone surrogate with U+FFFD, as Go does: JSON text holds none."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {without_surrogates(key): well_formed(item) for key, item in value.items()}
    return [well_formed(item) for item in value] if isinstance(value, list | tuple) else value


def type_name(value: Value) -> str:
    """Return Terraform's name of the type in messages."""
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
    """Encode as jsonencode does: keys sorted, HTML characters escaped."""
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
