"""Counters of rate limits in memory that processes share."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from coder.api.base.refusals import RateLimited
from coder.appproxy.http import shared_counts
from coder.appproxy.http.rate_limits import RateLimits
from coder.appproxy.http.shared_counts import SharedCounts
from coder.base.clock import FakeClock

KEY, OTHER = b"k" * 16, b"o" * 16
NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


def views(count: int = 2) -> list[SharedCounts]:
    memory = SharedCounts(count)
    return [memory.for_table(number) for number in range(count)]


def limits(shared: SharedCounts) -> RateLimits:
    config: Any = SimpleNamespace(dangerous_disable_rate_limits=False, api_rate_limit=3)
    found = RateLimits(SimpleNamespace(config=config, clock=FakeClock(NOW)))
    found.shared = shared
    return found


def test_process_sees_counts_of_others() -> None:
    one, two = views()
    one.put(KEY, 5, 3, 1)
    assert two.others(KEY, 5) == (3, 1)
    assert two.others(OTHER, 5) == (0, 0)
    assert one.others(KEY, 5) == (0, 0)


@pytest.mark.parametrize(("window", "expected"), [(5, (3, 1)), (6, (0, 3)), (7, (0, 0))])
def test_counts_age_with_windows(window: int, expected: tuple[int, int]) -> None:
    one, two = views()
    one.put(KEY, 5, 3, 1)
    assert two.others(KEY, window) == expected


def test_new_view_empties_its_table() -> None:
    memory = SharedCounts(2)
    one, two = memory.for_table(0), memory.for_table(1)
    one.put(KEY, 5, 3, 0)
    memory.for_table(0)
    assert two.others(KEY, 5) == (0, 0)


def test_full_set_keeps_largest_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_counts, "ROWS", 8)  # one set
    one, two = views()
    keys = [bytes([number]) * 16 for number in range(9)]
    for number, key in enumerate(keys):
        one.put(key, 5, number + 10, 0)
    kept = [two.others(key, 5)[0] for key in keys]
    assert kept[0] == 0
    assert kept[1:] == [number + 10 for number in range(1, 9)]


def test_forked_process_shares_the_memory() -> None:
    one, two = views()
    child = os.fork()
    if not child:
        two.put(KEY, 5, 7, 0)
        os._exit(0)
    os.waitpid(child, 0)
    assert one.others(KEY, 5) == (7, 0)


def test_limit_holds_across_processes() -> None:
    one, two = map(limits, views())
    for counted in (one, two, one):
        counted.count("user-1", "/path")
    for full in (one, two):
        with pytest.raises(RateLimited):
            full.count("user-1", "/path")
    two.count("user-2", "/path")
