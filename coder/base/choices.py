"""Narrow a text to one of the known values of an enumeration."""

from __future__ import annotations

from collections.abc import Container
from typing import TypeGuard, TypeVar

T = TypeVar("T", bound=str)


def is_choice(text: str, choices: Container[T]) -> TypeGuard[T]:
    """Return whether `text` is an item of `choices`, values of a `Literal`."""
    return text in choices
