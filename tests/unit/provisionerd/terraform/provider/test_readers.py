"""Readers of Terraform values: each accepts the values of its type and rejects all others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coder.provisionerd.terraform.provider import readers
from coder.provisionerd.terraform.provider.values import UNKNOWN, Value

_BLOCK: Value = {"key": "a"}
_VALUES: tuple[Value, ...] = (None, UNKNOWN, True, 0, 2, 1.5, "", "text", [], [_BLOCK], ["text"], [None], {}, _BLOCK)

_ACCEPTED: list[tuple[Callable[[Value], Value], list[tuple[Value, Value]]]] = [
    (readers.checked_text, [("", ""), ("text", "text")]),
    (readers.checked_number, [(True, True), (0, 0), (2, 2), (1.5, 1.5)]),
    (readers.checked_object, [({}, {}), (_BLOCK, _BLOCK)]),
]
"""(reader, values that it accepts with its results)"""


@pytest.mark.parametrize(("reader", "accepted"), _ACCEPTED, ids=["text", "number", "object"])
def test_reader_accepts_its_type(reader: Callable[[Value], Value], accepted: list[tuple[Value, Value]]) -> None:
    results: list[tuple[Value, Value]] = []
    for value in _VALUES:
        try:
            results.append((value, reader(value)))
        except TypeError:
            continue
    assert results == accepted


def test_blocks_accept_null() -> None:
    accepted: list[tuple[Value, list[dict[str, Value]]]] = []
    for value in _VALUES:
        try:
            accepted.append((value, readers.checked_blocks(value)))
        except TypeError:
            continue
    assert accepted == [(None, []), ([], []), ([_BLOCK], [_BLOCK])]


@pytest.mark.parametrize("value", [None, UNKNOWN])
def test_known_blocks_skip_unknown(value: Value) -> None:
    assert readers.known_blocks(value) == []


def test_blocks_are_not_copied() -> None:
    block: dict[str, Value] = {"is_null": None}
    readers.checked_blocks([block])[0]["is_null"] = True
    assert block == {"is_null": True}
