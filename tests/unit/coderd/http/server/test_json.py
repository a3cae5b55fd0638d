"""Bodies as Go's decoder reads them: what is no text is replaced, what follows the first value is not looked at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import get_args, get_type_hints
from uuid import UUID

import msgspec
import pytest

from coder.coderd.http.server.declarations import route_of
from coder.coderd.http.server.json import _decode, parse_body
from coder.coderd.services.foundation.errors import BAD_BODY, Invalid
from tests.kit.openapi import application


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"x\xffy"}', {"a": "x\ufffdy"}),
        (b'{"a":"\\ud800"}', {"a": "\ufffd"}),
        (b'{"a":["\\udc00x","\\ud83d\\ude00"]}', {"a": ["\ufffdx", "\U0001f600"]}),
        (b'{"a":1} {"a":2}', {"a": 1}),
        (b' {"a":"\xc3"} rest', {"a": "\ufffd"}),
        (b"null", None),
    ],
)
def test_what_is_read(raw: bytes, value: object) -> None:
    assert _decode(raw) == value


@pytest.mark.parametrize(
    "raw",
    [b"", b"  ", b"nonsense", b"\xff\xfe{}", b"{", b'{"a":NaN}', b'{"a":1e999}', b'{"a":Infinity} x', b"[" * 9000],
)
def test_what_is_refused(raw: bytes) -> None:
    with pytest.raises(Invalid, match="Request body must be valid JSON"):
        _decode(raw)


def _with_ids() -> Iterator[tuple[type[msgspec.Struct], str]]:
    """Every field of a request that holds an id."""
    views = application().view_functions.values()
    for kind in {said.body for said in map(route_of, views) if said is not None and isinstance(said.body, type)}:
        if issubclass(kind, msgspec.Struct):
            found = ((name, _options(kind, name)) for name in get_type_hints(kind))
            yield from ((kind, name) for name, options in found if UUID in options or list[UUID] in options)


def _options(kind: type[msgspec.Struct], field: str) -> tuple[object, ...]:
    hint = get_type_hints(kind)[field]
    return (hint, *get_args(hint))


@pytest.mark.parametrize(("kind", "field"), sorted(_with_ids(), key=str))
def test_every_id_of_a_request_is_refused_in_go_s_words(kind: type[msgspec.Struct], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_body(msgspec.json.encode({field: ["zzz"] if list[UUID] in _options(kind, field) else "zzz"}), kind)
    assert (str(refused.value.message), refused.value.detail) == (BAD_BODY, "invalid UUID length: 3")


class Inner(msgspec.Struct):
    ids: list[UUID]


class Outer(msgspec.Struct):
    inner: list[Inner]
    at: datetime


def test_ids_and_times_within_lists_are_found() -> None:
    for sent, detail in (
        ({"inner": [{"ids": []}, {"ids": [str(UUID(int=1)), "x"]}]}, "invalid UUID length: 1"),
        ({"at": "soon"}, 'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"'),
    ):
        with pytest.raises(Invalid) as refused:
            parse_body(msgspec.json.encode(sent), Outer)
        assert refused.value.detail == detail
