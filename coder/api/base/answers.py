"""A server's response decoded into a shape of this package, as leniently as Go's decoder.

Servers of other releases and upstream's own send fewer, more and different values than our shapes have: an empty list
is null, a field is missing, a status has a new word. A command must still be able to use the parts it understands. A
value of another type, or of a clearly different shape, is refused.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias, TypeVar, cast
from uuid import UUID

import msgspec
from msgspec import UnsetType

from coder.base.json_types import Json, JsonObject
from coder.domain.foundation.zero import NIL_UUID, ZERO_TIME

T = TypeVar("T")

Field: TypeAlias = "Json | UUID | datetime | msgspec.Struct | Sequence[Field] | Mapping[str, Field]"
"""Decoded value of a field."""
Hint = type | types.UnionType | types.GenericAlias
"""Type of a field, as `typing.get_type_hints` returns it."""

_ZEROS: dict[Hint, Field] = {str: "", bool: False, int: 0, float: 0.0, UUID: NIL_UUID, datetime: ZERO_TIME}


def read_answer(data: bytes, kind: type[T]) -> T:
    """Decode a response. Raises msgspec.ValidationError for another type, msgspec.DecodeError or UnicodeDecodeError for
    invalid JSON."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        return cast("T", _entry(msgspec.json.decode(data), kind, "$"))


def _value(value: Json, hint: Hint, location: str) -> Field:
    options = _options(hint)
    if value is None:
        return None if type(None) in options or Json in options else _zero(hint)
    plain = next(option for option in options if option not in (type(None), UnsetType))
    origin = typing.get_origin(plain) or plain
    if origin is list:
        (inner,) = typing.get_args(plain)
        return [_entry(item, inner, f"{location}[]") for item in _of_type(value, list, location)]
    if origin is dict:
        _, inner = typing.get_args(plain)
        return {key: _value(item, inner, f"{location}.{key}") for key, item in _of_type(value, dict, location).items()}
    if origin is typing.Literal:
        return _of_type(value, str, location)  # a newer server knows more words
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return _struct(_of_type(value, dict, location), origin, location)
    try:
        converted: Field = msgspec.convert(value, plain)
        return converted
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{error} - at `{location}`") from error


def _entry(value: Json, hint: Hint, location: str) -> Field:
    """Decode an item of a list, or the whole response: null is not an object there."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(_of_type(value, dict, location), hint, location)
    return _value(value, hint, location)


def _struct(value: JsonObject, kind: type[msgspec.Struct], location: str) -> msgspec.Struct:
    fields = _fields(kind)
    required = [key for _, key, _, is_required in fields if is_required]
    if required and not any(key in value for key in required):
        raise msgspec.ValidationError(f"Object has no field of {kind.__name__} - at `{location}`")
    if "id" in required and not value.get("id"):
        raise msgspec.ValidationError(f"Object missing required field `id` - at `{location}`")
    return kind(
        **{
            name: _value(value.get(key), hint, f"{location}.{key}")
            for name, key, hint, is_required in fields
            if is_required or value.get(key) is not None
        }
    )


def _of_type(value: Json, kind: type[T], location: str) -> T:
    if not isinstance(value, kind):
        raise msgspec.ValidationError(f"Expected `{kind.__name__}`, got `{type(value).__name__}` - at `{location}`")
    return value


def _zero(hint: Hint) -> Field:
    plain = _options(hint)[0]
    origin = typing.get_origin(plain) or plain
    if origin is list:
        return []
    if origin is dict:
        return {}
    if origin is typing.Literal:
        return ""
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        needed = [(name, inner) for name, _, inner, is_required in _fields(origin) if is_required]
        return origin(**{name: None if type(None) in _options(inner) else _zero(inner) for name, inner in needed})
    return _ZEROS.get(origin)


def _options(hint: Hint) -> tuple[Hint, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Hint, bool], ...]:
    """Return (our name, the wire's, type, required) of each field."""
    hints = typing.get_type_hints(kind)
    return tuple(
        (field.name, field.encode_name, hints[field.name], field.required) for field in msgspec.structs.fields(kind)
    )
