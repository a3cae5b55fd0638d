"""A server's answer as a shape of this package, read as Go's decoder reads it.

Servers of other releases and upstream's own say less, more and other than our shapes do: a list that is empty is null,
a field is not there yet, a status has a new word. None of that keeps a command from using what it understands. What is
of another type, and what is plainly something else, is refused.
"""

from __future__ import annotations

import functools
import types
import typing
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from msgspec import UnsetType

from coder.domain.foundation.zero import NIL_UUID, ZERO_TIME

T = TypeVar("T")

_ZEROS: dict[Any, Any] = {str: "", bool: False, int: 0, float: 0.0, UUID: NIL_UUID, datetime: ZERO_TIME}


def read_answer(data: bytes, kind: type[T]) -> T:
    """Raises msgspec.ValidationError for another type, msgspec.DecodeError or UnicodeDecodeError for no JSON."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        found: T = _entry(msgspec.json.decode(data), kind, "$")
        return found


def _value(given: Any, hint: Any, where: str) -> Any:
    options = _options(hint)
    if given is None:
        return None if type(None) in options or Any in options else _zero(hint)
    plain = next(one for one in options if one not in (type(None), UnsetType))
    origin = typing.get_origin(plain) or plain
    if origin is list:
        (inner,) = typing.get_args(plain)
        return [_entry(one, inner, f"{where}[]") for one in _of_type(given, list, where)]
    if origin is dict:
        _, inner = typing.get_args(plain)
        return {key: _value(one, inner, f"{where}.{key}") for key, one in _of_type(given, dict, where).items()}
    if origin is typing.Literal:
        return _of_type(given, str, where)  # a newer server knows more words
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return _struct(_of_type(given, dict, where), origin, where)
    try:
        return msgspec.convert(given, plain)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{error} - at `{where}`") from error


def _entry(given: Any, hint: Any, where: str) -> Any:
    """Of a list, or the whole: nothing at all is no object there."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(_of_type(given, dict, where), hint, where)
    return _value(given, hint, where)


def _struct(given: dict[str, Any], kind: type[msgspec.Struct], where: str) -> msgspec.Struct:
    fields = _fields(kind)
    required = [key for _, key, _, is_required in fields if is_required]
    if required and not any(key in given for key in required):
        raise msgspec.ValidationError(f"Object has no field of {kind.__name__} - at `{where}`")
    if "id" in required and not given.get("id"):
        raise msgspec.ValidationError(f"Object missing required field `id` - at `{where}`")
    return kind(
        **{
            name: _value(given.get(key), hint, f"{where}.{key}")
            for name, key, hint, is_required in fields
            if is_required or given.get(key) is not None
        }
    )


def _of_type(given: Any, kind: type, where: str) -> Any:
    if not isinstance(given, kind):
        raise msgspec.ValidationError(f"Expected `{kind.__name__}`, got `{type(given).__name__}` - at `{where}`")
    return given


def _zero(hint: Any) -> Any:
    plain = _options(hint)[0]
    origin = typing.get_origin(plain) or plain
    if origin in (list, dict):
        return origin()
    if origin is typing.Literal:
        return ""
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        needed = [(name, inner) for name, _, inner, is_required in _fields(origin) if is_required]
        return origin(**{name: None if type(None) in _options(inner) else _zero(inner) for name, inner in needed})
    return _ZEROS.get(origin)


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any, bool], ...]:
    """(our name, the wire's, type, required)."""
    hints = typing.get_type_hints(kind)
    return tuple((one.name, one.encode_name, hints[one.name], one.required) for one in msgspec.structs.fields(kind))
