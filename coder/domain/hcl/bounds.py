"""Bounds on what an expression makes, applied before it is made.

A few characters of a template can describe gigabytes: `indent(2147483648, x)`, `format("%[1]s%[1]s…", x)`, a list of
ten lists of ten lists. What an expression has made is charged to its budget (`scope.py`); these bounds apply before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coder.domain.hcl.values import EvaluationError, Value

MAX_MADE = 1_000_000
"""Ours: characters and elements of one result; as much as a whole rendering may make (`EvaluationBudget.left`)."""


class TooMuchError(EvaluationError):
    """A bound was reached. `try` and `can` do not catch it: an expression could reach it again and again."""

    def __init__(self) -> None:
        super().__init__("the template requires too much computation")


def require_size(size: int | float) -> None:
    """Raise TooMuchError when something of this size may not be made."""
    if size > MAX_MADE:
        raise TooMuchError


def weigh(values: Iterable[Value], *, with_text: bool) -> int:
    """Count the elements of values and of all values inside them, and their characters `with_text`; a shared part
    counts wherever it occurs, as every walk visits it there. Stops above MAX_MADE."""
    count = 0
    left: list[Iterator[Value]] = [iter(values)]
    end = object()
    while left and count <= MAX_MADE:
        value = next(left[-1], end)
        if value is end:
            left.pop()
            continue
        count += 1
        if isinstance(value, dict):
            if with_text:
                count += sum(map(len, value))
            left.append(iter(value.values()))
        elif isinstance(value, list):
            left.append(iter(value))
        elif with_text and isinstance(value, str):
            count += len(value)
    return count
