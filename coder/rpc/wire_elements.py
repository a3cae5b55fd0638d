"""Counter of the list and map elements of an encoded message, used before it is decoded.

The decoder is one C call and holds the interpreter: two million empty elements stop every thread for a fifth of a
second. This walk yields like any Python code, and stops at the first excess element. It skips messages without lists.
`message_limits.py` measures texts afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor, FieldDescriptor

if TYPE_CHECKING:
    from google._upb import _message as compiled

    MessageKind = Descriptor | compiled.Descriptor
    FieldKind = FieldDescriptor | compiled.FieldDescriptor

MAX_FIELDS = 500_000
"Fields (ours) of a message with lists; the largest genuine ones have a third of it."
_BROKEN = "the message cannot be decoded"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {FieldDescriptor.CPPTYPE_DOUBLE: 8, FieldDescriptor.CPPTYPE_FLOAT: 4}
_CONTINUED = bytes(range(128, 256))
"Bytes of a varint that has not ended."


@dataclass(frozen=True, slots=True)
class FieldLimit:
    """Limits of one field."""

    name: str
    elements: int
    "Limit of elements; 0: neither list nor map."
    is_apart: bool
    "Whether its elements are counted apart from the whole message."
    size: int
    "Limit of bytes of a text, or of a map's values; 0: no text."
    key_size: int
    "Limit of bytes of a key; 0: not a map with text keys."
    is_map: bool
    has_messages: bool


@dataclass(slots=True)
class _Row:
    """Field of a kind of message."""

    limit: FieldLimit
    inside: Fields | None
    "Fields of its messages, where they have lists."
    is_packed: bool
    "Whether it is a packed list of numbers: one run of bytes has many."
    width: int
    "Bytes of a packed number; 0: varint."


@dataclass(slots=True)
class Fields:
    """Fields by number of one kind of message that are lists, or contain lists."""

    rows: dict[int, _Row] = field(default_factory=dict)


def fields_of(kind: MessageKind, limit_of: Callable[[FieldKind], FieldLimit], known: dict[str, Fields]) -> Fields:
    """Return the fields of a kind. `known` caches complete kinds: several threads may call concurrently."""
    fields = known.get(kind.full_name)
    if fields is None:
        created: dict[str, Fields] = {}
        fields = _make(kind, limit_of, created)
        known.update(created)
    return fields


def _make(kind: MessageKind, limit_of: Callable[[FieldKind], FieldLimit], created: dict[str, Fields]) -> Fields:
    fields = created.get(kind.full_name)
    if fields is None:
        fields = created[kind.full_name] = Fields()  # before its rows: a kind may contain itself
        for field_descriptor in kind.fields:
            inner = field_descriptor.message_type
            inside = _make(inner, limit_of, created) if inner is not None and _has_lists(inner, set()) else None
            if field_descriptor.is_repeated or inside is not None:
                packed = field_descriptor.is_repeated and field_descriptor.cpp_type not in {
                    FieldDescriptor.CPPTYPE_MESSAGE,
                    FieldDescriptor.CPPTYPE_STRING,
                }
                fields.rows[field_descriptor.number] = _Row(
                    limit_of(field_descriptor), inside, packed, _WIDTHS.get(field_descriptor.cpp_type, 0)
                )
    return fields


def _has_lists(kind: MessageKind, seen: set[str]) -> bool:
    if kind.full_name in seen:
        return False
    seen.add(kind.full_name)
    return any(
        field_descriptor.is_repeated
        or (field_descriptor.message_type is not None and _has_lists(field_descriptor.message_type, seen))
        for field_descriptor in kind.fields
    )


def explain_elements(fields: Fields, data: bytes, total: int) -> str:
    """Return the exceeded limit; empty when all are kept. Broken encodings are reported too: the decoder would fail on
    them later."""
    try:
        return _Walk(data, total).run(fields)
    except IndexError:
        return _BROKEN


class _Walk:
    def __init__(self, data: bytes, total: int) -> None:
        self._data = data
        self._total = self._left = total
        self._steps = MAX_FIELDS

    def run(self, fields: Fields) -> str:
        queue = [(fields, 0, len(self._data))]
        while queue:
            excess = self._level(*queue.pop(), queue)
            if excess:
                return excess
        return ""

    def _level(self, fields: Fields, at: int, end: int, queue: list[tuple[Fields, int, int]]) -> str:
        data, rows, counts = self._data, fields.rows, dict[int, int]()
        while at < end:
            self._steps -= 1
            if self._steps < 0:
                return f"the message has over {MAX_FIELDS} fields"
            tag, at = _varint(data, at)
            row, size, start = rows.get(tag >> 3), 0, at
            wire_type = tag & 7
            if wire_type == _BYTES:
                size, start = _varint(data, at)
                at = start + size
            elif wire_type == _VARINT:
                _, at = _varint(data, at)
            elif wire_type in {_FIXED64, _FIXED32}:
                at += 8 if wire_type == _FIXED64 else 4
            else:
                return _BROKEN  # groups: our protocols have none
            if row is None:
                continue
            if row.limit.elements:
                number = _packed(row, data[start:at]) if row.is_packed and wire_type == _BYTES else 1
                counts[tag >> 3] = counts.get(tag >> 3, 0) + number
                if counts[tag >> 3] > row.limit.elements:
                    return f"{row.limit.name} has over {row.limit.elements} elements"
                self._left -= 0 if row.limit.is_apart else number
                if self._left < 0:
                    return f"the message has over {self._total} elements"
            if row.inside is not None and size:
                queue.append((row.inside, start, at))
        return "" if at == end else _BROKEN


def _packed(row: _Row, run: bytes) -> int:
    return len(run) // row.width if row.width else len(run.translate(None, _CONTINUED))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in range(7, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError
