"""Shortage of memory or disk: both rules on both sides, and no flapping in between."""

from __future__ import annotations

import pytest

from coder.domain.agents.resource_monitors import Reading, State, next_state, reading


def window(text: str) -> list[Reading]:
    return [{"+": "OK", "-": "NOK", "?": "unknown"}[letter] for letter in text]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("before", "readings", "after"),
    [
        ("OK", "++++++++++++++++++++", "OK"),
        ("OK", "-+-+-+++++++++++++++", "OK"),  # three of twenty: less than a fifth
        ("OK", "-+-+-+-+++++++++++++", "NOK"),  # four of twenty
        ("OK", "??????--", "NOK"),
        ("NOK", "-+++++++++++++++++++", "NOK"),  # not all good yet
        ("NOK", "?+++++++++++++++++++", "NOK"),  # unknown is not good
        ("NOK", "++++++++++++++++++++", "OK"),
        ("OK", "", "OK"),
    ],
)
def test_the_state_after_a_window(before: State, readings: str, after: State) -> None:
    assert next_state(before, window(readings)) == after


def test_reading_at_threshold_is_bad() -> None:
    assert [reading(used, 100, 80) for used in (79, 80, 81)] == ["OK", "NOK", "NOK"]
    assert reading(1, 0, 80) == "unknown"
