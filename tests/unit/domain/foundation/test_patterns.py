"""Patterns of users: bounded in length and in time."""

from __future__ import annotations

import pytest

from coder.domain.foundation.patterns import MAX_PATTERN, PatternProblem, compiled
from coder.domain.login.identity import matching


def test_pattern_time_is_linear() -> None:
    words = ["a" * 5000 + "!", "b"]
    assert matching(words, "^(a+)+$") == []
    assert matching(words, "b") == ["b"] and matching(words, None) == words


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "x" * (MAX_PATTERN + 1)])
def test_unusable_pattern_matches_nothing(pattern: str) -> None:
    with pytest.raises(PatternProblem):
        compiled(pattern)
    assert matching(["a", "x"], pattern) == []
