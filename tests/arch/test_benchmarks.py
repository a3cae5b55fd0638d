"""`scripts/bench --list` says what each benchmark answers and names its rows in words."""

from __future__ import annotations

import re

import pytest

from tests.bench.__main__ import listing, metrics, names


@pytest.mark.parametrize("name", names())
def test_each_benchmark_has_a_question_and_rows(name: str) -> None:
    (head,) = [line for line in listing().splitlines() if line.startswith(f"{name}: ")]
    assert head.endswith(".") and len(head) > len(name) + 30
    assert metrics(name)


@pytest.mark.parametrize("name", names())
def test_a_row_is_named_in_words(name: str) -> None:
    """No identifiers, and more than one word: a reader of the table has nothing else."""
    for metric in metrics(name):
        assert " " in metric and not re.search(r"[a-z]_[a-z]", metric), metric
