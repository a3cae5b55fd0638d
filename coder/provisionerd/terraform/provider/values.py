"""Terraform values in the plugin protocol: msgpack or JSON <-> plain Python.

A value is None, bool, int, float, str, list, dict or UNKNOWN ("known after apply"). Pure: bytes in, values out. Follows
the plugin protocol's encoding: an unknown value is extension type 0, a refined unknown extension type 12.
"""

from __future__ import annotations

import enum
import json
from typing import Final, TypeAlias

import msgspec


class Unknown(enum.Enum):
    """Type of `UNKNOWN`; an enum, so that type checkers can narrow with `is`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | Unknown | None"
"""A Terraform value. A set is a list, and a map is an object."""
ValueObject: TypeAlias = dict[str, Value]
"""An object, a map, or the body of a block, by names of attributes."""
_WireValue: TypeAlias = (
    "bool | int | float | str | list[_WireValue] | dict[str, _WireValue] | msgspec.msgpack.Ext | None"
)


def _decode_extension(_code: int, _data: memoryview) -> Unknown:
    # Refinements (code 12) narrow an unknown value; this provider does not use the range.
    return UNKNOWN


_UNKNOWN_ON_THE_WIRE = msgspec.msgpack.Ext(0, b"\x00")
_decoder = msgspec.msgpack.Decoder(ext_hook=_decode_extension)


def decode(packed: bytes, text: bytes = b"") -> Value:
    """Decode a DynamicValue. Raises ValueError for bytes that are neither msgpack nor JSON."""
    if packed:
        decoded: Value = _decoder.decode(packed)
        return decoded
    parsed: Value = json.loads(text) if text else None
    return parsed


def encode(value: Value) -> bytes:
    """Return the msgpack bytes of a value."""
    # Enum members are encoded by value before enc_hook is called, so unknowns are wrapped first.
    return msgspec.msgpack.encode(_wrap(value))


def _wrap(value: Value) -> _WireValue:
    if value is UNKNOWN:
        return _UNKNOWN_ON_THE_WIRE
    if isinstance(value, dict):
        return {key: _wrap(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def integer_fault(value: Value) -> str:
    """Return why a number is no integer of 64 bits, "" for one that is. Terraform sends numbers that float64 cannot
    hold exactly, such as 0.1, as decimal text."""
    number = float(value) if isinstance(value, int | float | str) else 0.0
    if not number.is_integer():
        return f"must be a whole number, got {number!r}"
    return "" if -(2.0**63) <= number < 2.0**63 else f"must be a number of 64 bits, got {number!r}"


def is_wholly_known(value: Value) -> bool:
    """Return whether no part of the value is unknown."""
    if value is UNKNOWN:
        return False
    if isinstance(value, dict):
        return all(is_wholly_known(item) for item in value.values())
    if isinstance(value, list):
        return all(is_wholly_known(item) for item in value)
    return True


def is_set(value: Value) -> bool:
    """Return whether a configuration sets this attribute or block: null and an empty block list do not count."""
    return value is not None and value != []
