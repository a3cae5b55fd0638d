"""JSON bytes <-> the shapes of this package."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def encode(value: object) -> bytes:
    """Compact JSON. Datetimes are RFC 3339 in UTC with a `Z`."""
    return _encoder.encode(value)


def decode(data: bytes | str, kind: type[T]) -> T:
    """Decode JSON. Raises msgspec.ValidationError or msgspec.DecodeError, both ValueErrors; also for excessive
    nesting."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as error:
        raise msgspec.DecodeError("JSON is nested too deeply") from error
