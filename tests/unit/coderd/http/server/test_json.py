"""Bodies in the manner of Go's decoder: invalid text is replaced, bytes after the first value are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args, get_type_hints
from uuid import UUID

import msgspec
import pytest

from coder.api.base.refusals import BAD_BODY, Invalid
from coder.coderd.http.server.declarations import route_of
from coder.coderd.http.server.json import _decode, parse_body
from tests.kit.api.api_description import application


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
def test_decoded_bodies(raw: bytes, value: object) -> None:
    assert _decode(raw) == value


@pytest.mark.parametrize(
    "raw",
    [b"", b"  ", b"nonsense", b"\xff\xfe{}", b"{", b'{"a":NaN}', b'{"a":1e999}', b'{"a":Infinity} x', b"[" * 9000],
)
def test_refused_bodies(raw: bytes) -> None:
    with pytest.raises(Invalid, match="Request body must be valid JSON"):
        _decode(raw)


def _with_ids() -> Iterator[tuple[type[msgspec.Struct], str]]:
    """Yield every field of a request that holds an id."""
    views = application().view_functions.values()
    for kind in {
        declarations.body
        for declarations in map(route_of, views)
        if declarations is not None and isinstance(declarations.body, type)
    }:
        if issubclass(kind, msgspec.Struct):
            result = ((name, _options(kind, name)) for name in get_type_hints(kind))
            yield from ((kind, name) for name, options in result if UUID in options or list[UUID] in options)


def _options(kind: type[msgspec.Struct], field: str) -> tuple[object, ...]:
    hint = get_type_hints(kind)[field]
    return (hint, *get_args(hint))


@pytest.mark.parametrize(("kind", "field"), sorted(_with_ids(), key=str))
def test_bad_ids_are_refused_in_go_words(kind: type[msgspec.Struct], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_body(msgspec.json.encode({field: ["zzz"] if list[UUID] in _options(kind, field) else "zzz"}), kind)
    assert (str(refused.value.message), refused.value.detail) == (BAD_BODY, "invalid UUID length: 3")


class Inner(msgspec.Struct):
    ids: list[UUID]


class Outer(msgspec.Struct):
    inner: list[Inner]
    at: datetime


def test_ids_and_times_in_lists() -> None:
    for sent, detail in (
        ({"inner": [{"ids": []}, {"ids": [str(UUID(int=1)), "x"]}]}, "invalid UUID length: 1"),
        ({"at": "soon"}, 'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"'),
    ):
        with pytest.raises(Invalid) as refused:
            parse_body(msgspec.json.encode(sent), Outer)
        assert refused.value.detail == detail


ODD_TIMES = [
    "2030-01-01T00:00:00",
    "2030-01-01 00:00:00Z",
    "2030-01-01t00:00:00z",
    "2030-01-01",
    "2030-13-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "x",
    "",
]
"""Times without a zone, in other spellings, and out of UTC's range."""


def _bodies() -> set[type[msgspec.Struct]]:
    declarations = (route_of(view) for view in application().view_functions.values())
    kinds = {item.body for item in declarations if item is not None and isinstance(item.body, type)}
    return {kind for kind in kinds if issubclass(kind, msgspec.Struct)}


def _with_time(kind: Any, text: str) -> Iterator[Any]:
    """Yield bodies of a type, with `text` as the only time; none for a type without times."""
    if isinstance(kind, msgspec.inspect.DateTimeType):
        yield text
    elif isinstance(kind, msgspec.inspect.StructType):
        chosen = {part.encode_name: _first_word(part.type) for part in kind.fields if part.required}
        rest = {name: value for name, value in chosen.items() if value is not None}
        for part in kind.fields:
            yield from ({**rest, part.encode_name: value} for value in _with_time(part.type, text))
    elif isinstance(kind, msgspec.inspect.UnionType):
        for option in kind.types:
            yield from _with_time(option, text)
    elif isinstance(kind, msgspec.inspect.ListType):
        yield from ([value] for value in _with_time(kind.item_type, text))
    elif isinstance(kind, msgspec.inspect.DictType):
        yield from ({"key": value} for value in _with_time(kind.value_type, text))


def _first_word(kind: Any) -> Any:
    """Return the first word of an enumeration, for a field whose zero value is invalid."""
    return kind.values[0] if isinstance(kind, msgspec.inspect.LiteralType) else None


class Keyed(msgspec.Struct):
    by_id: dict[UUID, datetime]


def test_times_keyed_by_ids_are_checked() -> None:
    ident = str(UUID(int=10))
    both = {ident: "2030-01-01T00:00:00Z", ident.upper(): "2030-01-01T00:00:00Z"}
    assert len(parse_body(msgspec.json.encode({"by_id": both}), Keyed).by_id) == 1
    for key in both:
        with pytest.raises(Invalid, match="valid JSON"):
            parse_body(msgspec.json.encode({"by_id": {key: "2030-01-01T00:00:00"}}), Keyed)


TIMED = {kind.__name__: kind for kind in _bodies() if any(_with_time(msgspec.inspect.type_info(kind), ""))}


def test_the_requests_with_times() -> None:
    assert {"UpsertWorkspaceAgentPortShareRequest", "AgentVitals", "ReportAppStatsRequest"} <= set(TIMED)


@pytest.mark.parametrize("text", ODD_TIMES)
@pytest.mark.parametrize("name", sorted(TIMED))
def test_every_request_time_is_checked(name: str, text: str) -> None:
    kind = TIMED[name]
    for body in _with_time(msgspec.inspect.type_info(kind), text):
        with pytest.raises(Invalid) as refused:
            parse_body(msgspec.json.encode(body), kind)
        assert refused.value.message == BAD_BODY and refused.value.detail.startswith("parsing time"), body


@pytest.mark.parametrize(
    "text", ["2030-01-01T00:00:00Z", "2030-01-01T00:00:00.123456789+05:30", "0001-01-01T00:00:00Z"]
)
@pytest.mark.parametrize("name", sorted(TIMED))
def test_other_time_formats(name: str, text: str) -> None:
    for body in _with_time(msgspec.inspect.type_info(TIMED[name]), text):
        parse_body(msgspec.json.encode(body), TIMED[name])
