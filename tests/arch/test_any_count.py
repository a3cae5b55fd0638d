"""The count of explicit `Any`, and of what stands for it."""

from __future__ import annotations

import pytest

from scripts.any_count import places


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from typing import Any\ndef f(a: Any) -> dict[str, Any]: ...", ["Any", "Any"]),
        ("import typing\na: typing.Any", ["Any"]),
        ("a: 'dict[str, Any]'", ["Any"]),
        ("a = cast('Any', b)", ["Any"]),
        ("Value = Any\ndef f(a: Value): ...", ["Any", "Value"]),
        ("a: dict[str, object]", ["object"]),
        ("Rows = list[object]", ["object"]),
        ("a: Callable[[object], object]", ["object"]),
        ("async def f(a: Awaitable[object]): ...", []),
        ("def __eq__(self, other: object) -> bool: ...", []),
        ("def f(_unused: object): ...", []),
        ("a = object()\nany(a)", []),
    ],
)
def test_places_are_counted(source: str, names: list[str]) -> None:
    assert [name for _, _, name in places(source)] == names
