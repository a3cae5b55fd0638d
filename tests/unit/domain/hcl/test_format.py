"""Terraform's `format`: verbs, flags, widths, positions."""

from __future__ import annotations

from typing import Any

import pytest

from coder.domain.hcl.format import go_format
from coder.domain.hcl.values import EvaluationError


@pytest.mark.parametrize(
    ("pattern", "arguments", "text"),
    [
        ("Hello, %s!", ("Ander",), "Hello, Ander!"),
        ("There are %d lights", (4,), "There are 4 lights"),
        ("%v %v %v", ("a", True, 1.5), "a true 1.5"),
        ("%#v", ("a",), '"a"'),
        ("%q", ("a",), '"a"'),
        ("%v", (["a", 1],), '["a",1]'),
        ("%t", (False,), "false"),
        ("%b %o %x %X", (5, 8, 255, 255), "101 10 ff FF"),
        ("%#x", (255,), "0xff"),
        ("%+d", (4,), "+4"),
        ("%5d|%-5d|%05d", (1, 2, 3), "    1|2    |00003"),
        ("%.2f", (3.14159,), "3.14"),
        ("%.2s", ("hello",), "he"),
        ("%[2]s %[1]s", ("a", "b"), "b a"),
        ("100%%", (), "100%"),
    ],
)
def test_verbs(pattern: str, arguments: tuple[Any, ...], text: str) -> None:
    assert go_format(pattern, arguments) == text


@pytest.mark.parametrize(
    ("pattern", "arguments", "message"),
    [
        ("%s %s", ("a",), "not enough arguments"),
        ("%s", ("a", "b"), "too many arguments"),
        ("%y", ("a",), "unsupported format verb"),
        ("%", (), "unsupported format verb"),
        ("%d", (1.5,), "integer"),
        ("%[3]s", ("a",), "not enough arguments"),
    ],
)
def test_mismatched_arguments_are_refused(pattern: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        go_format(pattern, arguments)


def test_a_width_costs_no_memory() -> None:
    assert len(go_format("%999999999d", (1,))) <= 10_000
    for verb in "feg":
        assert len(go_format(f"%.999999999{verb}", (1.5,))) <= 10_010
    assert go_format("%.999999999s|%.0f|%.07f", ("ab", 1.4, 2.5)) == "ab|1|2.5000000"
    assert len(go_format(f"%{'9' * 5000}d|%.{'9' * 5000}f", (1, 1.5))) <= 20_100


@pytest.mark.parametrize("message", ["20000", "0020000", "30000", "9" * 5000])
def test_precision_truncates_text(message: str) -> None:
    text = "x" * 25_000
    assert go_format(f"%.{message}s", (text,)) == text[: min(int(message[:9]), len(text))]
    assert go_format(f"%.{message}q", (text,)) == f'"{text[: min(int(message[:9]), len(text))]}"'
