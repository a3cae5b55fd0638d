"""Responses of older, newer and foreign servers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from coder.api.base.answers import read_answer
from coder.api.base.struct import ApiStruct
from coder.domain.foundation.zero import NIL_UUID, ZERO_TIME

ID = UUID("6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11")


class Part(ApiStruct):
    name: str
    size: float


class Thing(ApiStruct):
    id: UUID
    word: Literal["one", "two"]
    at: datetime
    parts: list[Part]
    tags: dict[str, str]
    part: Part
    maybe: Part | None
    anything: Any
    count: int
    is_on: bool
    title: str | UnsetType = UNSET
    later: list[Part] | UnsetType | None = UNSET


WHOLE = {
    "id": str(ID),
    "word": "one",
    "at": "2026-01-02T03:04:05Z",
    "parts": [{"name": "a", "size": 1}],
    "tags": {"k": "v"},
    "part": {"name": "b", "size": 2.5},
    "maybe": {"name": "c", "size": 0},
    "anything": [1],
    "count": 7,
    "is_on": True,
    "title": "t",
    "later": [{"name": "d", "size": 3}],
}


def response(**changes: Any) -> bytes:
    return json.dumps(WHOLE | changes).encode()


def test_complete_response_is_unchanged() -> None:
    thing = read_answer(response(), Thing)
    assert (thing.id, thing.at) == (ID, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert msgspec.to_builtins(thing) == WHOLE


def test_unknown_fields_are_ignored() -> None:
    newer = response(word="three", fresh={"x": 1}, part={"name": "b", "size": 2, "colour": "red"})
    thing = read_answer(newer, Thing)
    assert thing.word == "three"
    assert msgspec.to_builtins(thing) == WHOLE | {"word": "three", "part": {"name": "b", "size": 2.0}}


@pytest.mark.parametrize("field", [name for name in WHOLE if name != "id"])
@pytest.mark.parametrize("is_there", [True, False])
def test_null_and_missing_become_zero(field: str, is_there: bool) -> None:
    document = {**WHOLE, field: None} if is_there else {name: item for name, item in WHOLE.items() if name != field}
    zero = {
        "word": "",
        "at": ZERO_TIME,
        "parts": [],
        "tags": {},
        "part": Part(name="", size=0.0),
        "maybe": None,
        "anything": None,
        "count": 0,
        "is_on": False,
        "title": UNSET,
        "later": None if is_there else UNSET,
    }
    thing = read_answer(json.dumps(document).encode(), Thing)
    assert getattr(thing, field) == zero[field]
    assert thing.id == ID


def test_list_may_be_null() -> None:
    assert read_answer(b"null", list[Part]) == []
    assert read_answer(b'[{"name":"a"}]', list[Part]) == [Part(name="a", size=0.0)]
    for odd in (b"[null]", b"[{}]", b"[[]]", b"{}", b'"text"'):
        with pytest.raises(msgspec.ValidationError):
            read_answer(odd, list[Part])


def test_missing_nested_object_has_zeros() -> None:
    class Outer(ApiStruct):
        inner: Thing
        name: str

    outer = read_answer(b'{"name":"x"}', Outer)
    assert (outer.inner.id, outer.inner.part.name, outer.inner.parts) == (NIL_UUID, "", [])


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (b"{}", "no field of Thing"),
        (b'{"message":"Sign in"}', "no field of Thing"),
        (json.dumps({**WHOLE, "id": None}).encode(), "missing required field `id`"),
        (response(parts={}), r"Expected `list`, got `dict` - at `\$.parts`"),
        (response(parts=[{"name": 7}], word="new"), r"at `\$.parts\[\].name`"),
        (response(tags={"k": 1}), r"at `\$.tags.k`"),
        (response(word=3), r"Expected `str`, got `int` - at `\$.word`"),
        (response(at="soon"), r"at `\$.at`"),
        (response(part="b"), r"at `\$.part`"),
        (b"7", "Expected `dict`"),
        (b"null", "Expected `dict`"),
    ],
)
def test_wrong_type_is_refused_with_location(odd: bytes, words: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=words):
        read_answer(odd, Thing)


@pytest.mark.parametrize("broken", [b"", b'{"id":', b"<html>", b'"\xff"'])
def test_invalid_json_is_distinct(broken: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as caught:
        read_answer(broken, Thing)
    assert not isinstance(caught.value, msgspec.ValidationError)
