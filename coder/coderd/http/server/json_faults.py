"""The details of refused request bodies, in the words of Go's decoder, which clients of the original compare."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Hashable
from datetime import datetime
from typing import Any, TypeAlias, TypeGuard
from uuid import UUID

import msgspec

from coder.base.json_types import Json, as_list, as_object
from coder.coderd.http.server.go_types import field_type, go_struct, item_type, short_name
from coder.domain.foundation.go_json import explain_type
from coder.domain.foundation.go_uuid import NotUuid, parse_uuid
from coder.domain.foundation.search import explain_time

_TEXT_FAULT = re.compile(r"Invalid (?:UUID|RFC3339 encoded datetime) - at `\$((?:\.\w+|\[\d+\])+)`")
_KIND_FAULT = re.compile(r"Expected `[^`]+`, got `\w+` - at `\$((?:\.\w+|\[\d+\]|\[\.\.\.\])+)`")
_STEPS = re.compile(r"\.(\w+)|\[(\d+)\]|\[(\.\.\.)\]")
_Hint: TypeAlias = Hashable
"""Type of a field: a class, or a form of `typing`, for which `typing` has no common class."""
_GO_TYPES: dict[_Hint, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    UUID: "uuid.UUID",
    datetime: "time.Time",
}
_NULL: type = types.NoneType


def explain_fault(declaration: str, document: Json, kind: type[msgspec.Struct]) -> str:
    """Return Go's words for a value of the wrong kind, or for an invalid text that clients can see (an id, a time);
    `declaration` is the decoder's message, which is returned for everything else."""
    fault = _TEXT_FAULT.fullmatch(declaration) or _KIND_FAULT.fullmatch(declaration)
    if fault is None:
        return declaration
    value = document
    owner = kind
    hint: _Hint = kind
    named = ""  # the Go type of the value, where the table knows it
    names: list[str] = []
    for name, number, some_key in _STEPS.findall(fault[1]):
        if some_key:  # the decoder does not say which: the first value of the map that it cannot take
            hint, named = _argument(hint, 1), item_type(named)
            value = next((item for item in as_object(value).values() if not _fits(item, hint)), None)
            continue
        try:
            value = as_list(value)[int(number)] if number else as_object(value)[name]
        except LookupError:  # a step that the decoder does not describe
            return declaration
        if number:
            hint, named = _argument(hint, 0), item_type(named)
            continue
        names.append(name)
        if _is_struct(hint):
            owner, named = hint, field_type(hint, name)
            hint = _field_hint(owner, name)
        else:
            hint, named = _argument(hint, 1), item_type(named)
    if isinstance(value, str) and hint is UUID:
        uuid = parse_uuid(value)
        return uuid.reason if isinstance(uuid, NotUuid) else declaration
    if hint is datetime:
        return explain_time(value) if isinstance(value, str) else "Time.UnmarshalJSON: input is not a JSON string"
    return explain_type(value, named or go_type(hint), f"{short_name(go_struct(owner))}.{'.'.join(names)}")


def explain_document(document: Json, kind: type[msgspec.Struct]) -> str:
    """Return Go's words for a document that is no object."""
    return explain_type(document, go_struct(kind))


def go_type(hint: _Hint) -> str:
    """Return the name of the Go type that a field of this type has in the original."""
    hint = _required(hint)
    origin = typing.get_origin(hint)
    if origin is list:
        return f"[]{go_type(_argument(hint, 0))}"
    if origin is dict:
        return f"map[{go_type(_argument(hint, 0))}]{go_type(_argument(hint, 1))}"
    if origin is typing.Literal:
        return "string"
    return _GO_TYPES.get(hint) or (go_struct(hint) if isinstance(hint, type) else "codersdk.Value")


def _required(hint: _Hint) -> _Hint:
    """Return a field's type without its `| None` and `| UnsetType`."""
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        return next((part for part in typing.get_args(hint) if part not in {_NULL, msgspec.UnsetType}), _NULL)
    return _required(typing.get_args(hint)[0]) if typing.get_origin(hint) is typing.Annotated else hint


def _argument(hint: _Hint, index: int) -> _Hint:
    arguments = typing.get_args(_required(hint))
    return _required(arguments[index]) if index < len(arguments) else Any


def _fits(value: Json, hint: _Hint) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return True


def _is_struct(hint: _Hint) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _field_hint(kind: type[msgspec.Struct], name: str) -> _Hint:
    hints = typing.get_type_hints(kind)
    fields = (field.name for field in msgspec.structs.fields(kind) if field.encode_name == name)
    return _required(hints[next(fields)])
