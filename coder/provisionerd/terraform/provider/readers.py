"""Readers of Terraform values: a value of the type that the schema of its attribute or block promises.

Terraform converts every value to the schema's type before it calls a provider, so a TypeError here is a defect, which
the call reports as its status. Pure.
"""

from __future__ import annotations

from coder.provisionerd.terraform.provider.values import Value, ValueObject


def checked_text(value: Value) -> str:
    """Return a known text. Raises TypeError for any other value, null included."""
    if not isinstance(value, str):
        raise TypeError(f"a text is required, got {type(value).__name__}")
    return value


def checked_number(value: Value) -> int | float:
    """Return a known number. Raises TypeError for any other value, null included."""
    if not isinstance(value, int | float):
        raise TypeError(f"a number is required, got {type(value).__name__}")
    return value


def checked_object(value: Value) -> ValueObject:
    """Return a known object itself, not a copy. Raises TypeError for any other value, null included."""
    if not isinstance(value, dict):
        raise TypeError(f"an object is required, got {type(value).__name__}")
    return value


def checked_blocks(value: Value) -> list[ValueObject]:
    """Return the items of nested blocks in a new list; null is an empty list. Raises TypeError for any other value,
    unknown included."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"a list of blocks is required, got {type(value).__name__}")
    return [checked_object(item) for item in value]


def known_blocks(value: Value) -> list[ValueObject]:
    """Return the items of nested blocks in a new list; null and unknown are an empty list."""
    return checked_blocks(value) if isinstance(value, list) else []
