"""JSON in and out of blueprints, with Go's rules for absent fields.

A missing or null field reads as its type's zero value (as in upstream's decoder), then `required` fields must not be
zero; several failures are reported together as validations.
"""

from __future__ import annotations

import functools
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from enum import Enum
from types import GenericAlias, UnionType
from typing import Never, TypeAlias, TypeVar
from uuid import UUID

import msgspec
import trio
from quart import Response, g

from coder.api.base import codec
from coder.api.base.refusals import BAD_BODY, Invalid, InvalidFields, Refusal
from coder.api.field_rules.table import NEW
from coder.base.errors import causes
from coder.base.json_types import Json, JsonObject
from coder.coderd.http.server.body_bounds import check_json
from coder.coderd.http.server.body_reading import received
from coder.coderd.http.server.declarations import declared
from coder.coderd.http.server.go_types import field_type, fits_integer, go_struct, short_name
from coder.coderd.http.server.json_faults import explain_document, explain_fault
from coder.coderd.http.server.path_objects import require_path_objects
from coder.coderd.services.foundation.field_checks import check_request
from coder.domain.foundation.go_json import WrittenNumber, explain_syntax, explain_type
from coder.domain.foundation.search import explain_time, parse_rfc3339
from coder.domain.foundation.zero import NIL_UUID, ZERO_TIME

T = TypeVar("T", bound=msgspec.Struct)
Decoded = TypeVar("Decoded")


_AT_ONCE = 32 << 10
"""Bytes of a body that are decoded on the event loop: about a millisecond."""
_MISSING = msgspec.UNSET
Hint: TypeAlias = type | UnionType | GenericAlias
Zero: TypeAlias = Json | Callable[[], Json] | msgspec.UnsetType
Fill: TypeAlias = Callable[[Json, tuple[str, ...]], Json]


async def read_body(kind: type[T]) -> T:
    """Return the request's JSON object as `kind`, which the route declares.

    Raises Invalid (not JSON, wrong type), InvalidFields (a required field is empty) or TooLarge.
    """
    declaration = declared()
    if declaration.body is not kind:
        raise TypeError(f"{declaration.view.__name__} reads {kind.__name__} and declares {declaration.body}")
    async with received(declaration.limit) as raw:
        try:
            body = await decoded(
                raw, lambda text: parse_body(text, kind, declaration.required, allow_empty=declaration.allow_empty)
            )
        except Invalid:
            await require_path_objects()
            raise
    g.sent = body  # the audit log reads it afterwards
    return body


async def read_document() -> Json:
    """Return any JSON within the route's limit. Raises ValueError, TooLarge."""
    async with received(declared().limit) as raw:
        return await decoded(raw, json.loads)


async def decoded(raw: bytes, decode: Callable[[bytes], Decoded]) -> Decoded:
    """Run `decode` on untrusted JSON after counting it. Raises TooLarge, and the errors of `decode`."""
    if len(raw) <= _AT_ONCE:
        check_json(raw)
        return decode(raw)

    def count_and_decode() -> tuple[Decoded, None] | tuple[None, Exception]:
        try:
            check_json(raw)
            return decode(raw), None
        except (Refusal, ValueError) as refusal:
            return None, _without_frames(refusal)

    # Decoding a large body would block other requests; for a small one a thread costs more.
    result = await trio.to_thread.run_sync(count_and_decode, limiter=_parsers())
    if result[1] is None:
        return result[0]
    try:
        raise result[1]
    finally:
        del result  # otherwise this frame, which its traceback holds, would hold it


def _without_frames(refusal: Exception) -> Exception:
    """Return the refusal without its frames. Trio carries an exception out of a thread with its traceback, whose frames
    hold the body: megabytes that only the next collection of cycles would free."""
    for caus in causes(refusal, with_context=True):
        caus.__traceback__ = None
    return refusal


@functools.cache
def _parsers() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(1)  # a second one would only share the interpreter with the first, and double the peak


def parse_body(raw: bytes, kind: type[T], required: Sequence[str] = (), *, allow_empty: bool = False) -> T:
    """Parse a body like `read_body`, without the request."""
    if not raw.strip() and allow_empty:
        raw = b"{}"
    document = _decode(raw)
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise Invalid(BAD_BODY, explain_document(document, kind))
    filled = with_zeros(document, kind)
    try:
        body = msgspec.convert(filled, kind)
    except msgspec.ValidationError as error:
        missing_field = re.search(r"missing required field `([^`]+)`", str(error))
        if missing_field:
            raise InvalidFields((missing_field[1], required_detail())) from error
        raise Invalid(BAD_BODY, explain_fault(str(error), _as_written(raw, kind) or filled, kind)) from error
    _check_times(body, filled)
    check_new(body, required)
    return body


def _check_times(value: object, sent: Json) -> None:
    """Check that Go could read every time: with its zone, and representable in UTC. The decoder accepts more, including
    times that cannot be compared or stored. Raises Invalid."""
    if isinstance(value, datetime):
        text = sent if isinstance(sent, str) else value.isoformat()
        if parse_rfc3339(text) is None:
            raise Invalid(BAD_BODY, explain_time(text))
    elif isinstance(value, msgspec.Struct) and isinstance(sent, dict):
        for info in msgspec.structs.fields(value) if _holds_times(type(value)) else ():
            if info.encode_name in sent:
                _check_times(getattr(value, info.name), sent[info.encode_name])
    elif isinstance(value, list) and isinstance(sent, list):
        for item, other in zip(value, sent, strict=True):
            _check_times(item, other)
    elif isinstance(value, dict) and isinstance(sent, dict):
        for key, item in value.items():
            _check_times(item, sent.get(key))  # None for an id in another spelling


@functools.cache
def _holds_times(kind: type[msgspec.Struct]) -> bool:
    """Return whether any part of a body may be a time: most have none, and are not traversed."""
    seen: set[type] = set()
    waiting: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(kind)]
    while waiting:
        result = waiting.pop()
        if isinstance(result, msgspec.inspect.DateTimeType):
            return True
        if isinstance(result, msgspec.inspect.StructType):
            if result.cls not in seen:
                seen.add(result.cls)
                waiting += [part.type for part in result.fields]
        else:
            waiting += getattr(result, "types", ())
            waiting += [
                part for name in ("item_type", "value_type") if (part := getattr(result, name, None)) is not None
            ]
    return False


def check_new(body: msgspec.Struct, required: Sequence[str] = ()) -> None:
    """Check a new object by the table of field rules; services check changes, since they know the current state. Raises
    InvalidFields."""
    if type(body) in NEW:
        check_request(body)
    missing = [name for name in required if _is_zero(getattr(body, name))]
    if missing:
        raise InvalidFields(*((name, required_detail()) for name in missing))


def _decode(raw: bytes) -> Json:
    try:
        document: Json = msgspec.json.decode(raw)
        return document
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        try:
            return _decode_as_go(raw)
        except (ValueError, RecursionError):
            raise Invalid(BAD_BODY, explain_syntax(raw) or str(error)) from error


def _decode_as_go(raw: bytes) -> Json:
    """Decode the first value; the rest is ignored, and invalid text becomes U+FFFD. Raises ValueError."""
    text = raw.decode("utf-8", "replace").lstrip()
    value, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text)
    document: Json
    try:
        document = msgspec.json.decode(text[:end])
    except msgspec.DecodeError:  # halves of surrogate pairs
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        document = msgspec.json.decode(whole.decode("utf-16", "replace"))
    return document


def _as_written(raw: bytes, kind: type[msgspec.Struct]) -> JsonObject:
    """Return the object with its numbers as they are written, for errors; {} if it is nested too deeply."""
    decoder = json.JSONDecoder(parse_float=WrittenNumber)
    try:
        document, _ = decoder.raw_decode(raw.decode("utf-8", "replace").lstrip())
    except RecursionError:
        return {}
    return with_zeros(document, kind)


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def required_detail(value: str = "") -> str:
    """Return upstream's text for an empty required field."""
    return f'Validation failed for tag "required" with value: "{value}"'


def with_zeros(document: Mapping[str, Json], kind: type[msgspec.Struct], path: tuple[str, ...] = ()) -> JsonObject:
    """Return `document`, which is at `path`, with every absent or null field of `kind` that must have a value set to
    its zero value. Raises Invalid for a number that Go's integer of a field cannot hold."""
    fields = _fields(kind)
    lowered: dict[str, str] | None = None
    filled: JsonObject = {}
    for name, zero, fill, nullable, integer in fields:
        value = document.get(name, _MISSING)
        if value is _MISSING:
            # Go matches keys without regard to case when the exact key is absent.
            lowered = (
                lowered if lowered is not None else _other_spellings(document, {field[0].lower() for field in fields})
            )
            value = document.get(lowered.get(name.lower(), name), _MISSING)
        if value is not _MISSING:
            filled[name] = value
        if value is _MISSING or (value is None and not nullable):
            if zero is not _MISSING:
                filled[name] = zero() if callable(zero) else zero
            elif value is None:
                filled.pop(name, None)
        elif integer and type(value) is int and not fits_integer(value, integer):
            place = ".".join((short_name(go_struct(kind)), *path, name))
            raise Invalid(BAD_BODY, explain_type(value, integer, place))
        elif fill is not None:
            filled[name] = fill(value, (*path, name))
    return filled


def _other_spellings(document: Mapping[str, Json], names: Set[str]) -> dict[str, str]:
    """Return lower case -> original spelling of the keys in `wanted`: other keys cost nothing."""
    return {lower: key for key in document if (lower := key.lower()) in names}


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Zero, Fill | None, bool, str], ...]:
    """Return (wire name, zero value or _MISSING when the field has its own default, function that fills what is inside,
    nullable, Go type of an integer)."""
    hints = typing.get_type_hints(kind)
    result = []
    for info in msgspec.structs.fields(kind):
        hint = hints[info.name]
        options = _options(hint)
        has_default = info.default is not msgspec.NODEFAULT or info.default_factory is not msgspec.NODEFAULT
        nullable = type(None) in options
        zero = _MISSING if has_default else None if nullable else _zero(options[0])
        integer = (field_type(kind, info.encode_name) or "int64") if int in options else ""
        result.append((info.encode_name, zero, _filler(options), nullable, integer))
    return tuple(result)


def _options(hint: Hint) -> tuple[Hint, ...]:
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return typing.get_args(hint)
    return (hint,)


def _filler(options: tuple[Hint, ...]) -> Fill | None:
    """Return the function that fills a value of one of the types, or None where nothing is inside of it. Go reads null
    as an item of a list or map as the item's zero value, too."""
    for option in options:
        origin, arguments = typing.get_origin(option), typing.get_args(option)
        if origin in (list, dict) and arguments:
            item = _options(arguments[-1])
            zero = _MISSING if type(None) in item else _zero(item[0])
            return functools.partial(_fill_items, _filler(item), zero)
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            return functools.partial(_fill_struct, option)
    return None


def _fill_struct(kind: type[msgspec.Struct], value: Json, path: tuple[str, ...]) -> Json:
    return with_zeros(value, kind, path) if isinstance(value, dict) else value


def _fill_items(fill: Fill | None, zero: Zero, value: Json, path: tuple[str, ...]) -> Json:
    def filled(item: Json) -> Json:
        if item is None:
            made = zero() if callable(zero) else zero
            return None if isinstance(made, msgspec.UnsetType) else made
        return item if fill is None else fill(item, path)

    if isinstance(value, list):
        return [filled(item) for item in value]
    return {key: filled(item) for key, item in value.items()} if isinstance(value, dict) else value


def _zero(hint: Hint) -> Zero:
    origin = typing.get_origin(hint) or hint
    if origin is typing.Literal:
        # Without an empty value the missing field is reported as required.
        return "" if "" in typing.get_args(hint) else _MISSING
    if isinstance(origin, type):
        if issubclass(origin, msgspec.Struct):
            return functools.partial(with_zeros, {}, origin)
        if issubclass(origin, Enum):
            return ""
    return _ZEROS.get(origin)  # Any: null


_ZEROS: dict[Hint, Zero] = {
    str: "",
    bool: False,
    int: 0,
    float: 0.0,
    list: list,
    dict: dict,
    UUID: str(NIL_UUID),
    type(ZERO_TIME): "0001-01-01T00:00:00Z",
}


def _is_zero(value: object) -> bool:
    if isinstance(value, UUID):
        return value == NIL_UUID
    return value in ("", None, 0, [], {}, msgspec.UNSET)


def reply(value: object, status: int = 200) -> Response:
    """Return a JSON response. `value` is a struct of `coder.api`, or anything msgspec encodes."""
    return Response(codec.encode(value), status, content_type="application/json; charset=utf-8")


def message(text: str, status: int = 200) -> Response:
    """Return `{"message": text}`."""
    return reply({"message": text}, status)


def no_content() -> Response:
    return empty(204)


def empty(status: int, **headers: str) -> Response:
    """Return a response without content, and without a type of it."""
    response = Response(b"", status, headers)
    del response.headers["Content-Type"]
    return response
