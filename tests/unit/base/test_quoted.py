"""Quoting of texts in messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.base.quoted import quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x", '"x"'),
        ("it's", '"it\'s"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("ü\x1b\n", '"ü\\u001b\\n"'),
        (Path("/a b"), '"/a b"'),
    ],
)
def test_quotes_and_escapes(text: object, shown: str) -> None:
    assert quoted(text) == shown
