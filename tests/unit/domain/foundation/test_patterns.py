"""Patterns that people set: bounded in length and in the time they take."""

from __future__ import annotations

import pytest

from coder.domain.foundation.patterns import MAX_PATTERN, PatternProblem, compiled
from coder.domain.login.identity import matching


def test_a_pattern_that_would_take_ages_elsewhere_does_not() -> None:
    words = ["a" * 5000 + "!", "b"]
    assert matching(words, "^(a+)+$") == []
    assert matching(words, "b") == ["b"] and matching(words, None) == words


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "x" * (MAX_PATTERN + 1)])
def test_what_cannot_be_used_says_so_and_matches_nothing(pattern: str) -> None:
    with pytest.raises(PatternProblem):
        compiled(pattern)
    assert matching(["a", "x"], pattern) == []
