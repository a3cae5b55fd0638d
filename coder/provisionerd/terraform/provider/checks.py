"""Checks on single values, with the messages of upstream's provider.

Each factory returns a `Check`: (value, dotted key) -> errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coder.domain.foundation.go_url import url_problem
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic
from coder.provisionerd.terraform.provider.readers import checked_number, checked_text
from coder.provisionerd.terraform.provider.schema import Check
from coder.provisionerd.terraform.provider.values import Value

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def one_of(*allowed: str) -> Check:
    listed = " ".join(f'"{word}"' for word in allowed)

    def check(value: Value, key: str) -> Iterator[str]:
        if value not in allowed:
            yield f"expected {key} to be one of [{listed}], got {value}"

    return check


def at_least(minimum: int) -> Check:
    def check(value: Value, key: str) -> Iterator[str]:
        if checked_number(value) < minimum:
            yield f"expected {key} to be at least ({minimum}), got {value}"

    return check


def between(low: int, high: int) -> Check:
    def check(value: Value, key: str) -> Iterator[str]:
        if not low <= checked_number(value) <= high:
            yield f"expected {key} to be in the range ({low} - {high}), got {value}"

    return check


def length_between(low: int, high: int) -> Check:
    """Return a check of the length in bytes."""

    def check(value: Value, key: str) -> Iterator[str]:
        if not low <= len(checked_text(value).encode()) <= high:
            yield f"expected length of {key} to be in the range ({low} - {high}), got {value}"

    return check


def at_most_bytes(limit: int, noun: str) -> Check:
    def check(value: Value, _key: str) -> Iterator[str]:
        if len(checked_text(value).encode()) > limit:
            yield f"{noun} is too long (max {limit} characters)"

    return check


def not_empty(value: Value, key: str) -> Iterator[str]:
    if value == "":
        yield f'expected "{key}" to not be an empty string, got {value}'


def is_uuid(value: Value, key: str) -> Iterator[str]:
    if not _UUID.fullmatch(checked_text(value)):
        yield f'expected "{key}" to be a valid UUID, got {value}'


def is_url(value: Value, _key: str) -> Iterator[str]:
    problem = url_problem(checked_text(value))
    if problem:
        yield problem


def every(checks: Sequence[Check]) -> Check:
    def check(value: Value, key: str) -> Iterator[str | Diagnostic]:
        for check_item in checks:
            yield from check_item(value, key)

    return check
