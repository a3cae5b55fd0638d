"""The median of latencies equals the standard library's."""

from __future__ import annotations

import random
import statistics

import pytest

from coder.agent.reports.stats import _median


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_median(count: int) -> None:
    values = [random.Random(count * 1000 + at).uniform(0, 2) for at in range(count)]
    assert _median(values) == statistics.median(values)
