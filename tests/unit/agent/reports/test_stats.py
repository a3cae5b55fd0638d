"""The median of latencies is what the standard library's would be."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from coder.agent.reports.stats import _median


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_the_median(values: list[float]) -> None:
    assert _median(values) == statistics.median(values)
