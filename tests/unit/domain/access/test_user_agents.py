"""Stored part of a User-Agent header."""

from __future__ import annotations

import pytest

from coder.domain.access.user_agents import LONGEST, kept

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.mark.parametrize(
    ("header", "left"),
    [
        (FIREFOX, FIREFOX),
        ("", ""),
        ("coder/2.34.0", "coder/2.34.0"),
        ("a\0b\nc\x1b[31md\u202ee", "abc[31mde"),
        ("a" * 100_000, "a" * LONGEST),
        ("\ud800x", "x"),
    ],
    ids=["browser", "none", "ours", "controls", "endless", "no text"],
)
def test_user_agent_is_shortened(header: str, left: str) -> None:
    assert kept(header) == left
    kept(header).encode()
