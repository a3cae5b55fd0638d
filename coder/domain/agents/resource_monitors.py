"""Rules for a shortage of memory or disk space: a window of readings against a threshold.

Source: docs/protocol/agents.md#limits. A window turns bad when the longest stretch of bad readings is half of it, or a
fifth of all readings is bad; it turns good again only when every reading is good. In between nothing changes, so that a
value at the threshold does not flap.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import Literal

State = Literal["OK", "NOK"]
Reading = Literal["OK", "NOK", "unknown"]

LONGEST_SHARE = 0.5
TOTAL_SHARE = 0.2
QUIET = timedelta(minutes=30)
"""Minimum time between two notifications about a monitor."""


def reading(used: int, total: int, threshold: int) -> Reading:
    """Compare a value with a threshold in per cent."""
    if total <= 0:
        return "unknown"
    return "NOK" if used * 100 >= threshold * total else "OK"


def next_state(before: State, readings: Sequence[Reading]) -> State:
    """Return the state after a window of readings."""
    if not readings:
        return before
    runs = [len(list(run)) for value, run in groupby(readings) if value == "NOK"]
    size = len(readings)
    if runs and (max(runs) >= size * LONGEST_SHARE or sum(runs) >= size * TOTAL_SHARE):
        return "NOK"
    return "OK" if all(value == "OK" for value in readings) else before
