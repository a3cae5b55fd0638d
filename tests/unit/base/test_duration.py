"""Durations in the forms of users and of Go programs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coder.base.duration import from_nanoseconds
from coder.base.errors import CoderError


@pytest.mark.parametrize(
    ("nanoseconds", "microseconds"),
    [(0, 0), (1, 1), (-1, -1), (-999, -1), (1500, 2), (3_600 * 10**9, 3_600 * 10**6), (-(2**63), -(2**63) / 1000)],
)
def test_only_zero_nanoseconds_are_zero(nanoseconds: int, microseconds: float) -> None:
    assert from_nanoseconds(nanoseconds) == timedelta(microseconds=microseconds)


def test_overflow_is_rejected() -> None:
    with pytest.raises(CoderError, match="is too long"):
        from_nanoseconds(10**30)
