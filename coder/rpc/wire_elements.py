"""How many elements the lists and maps of an encoded message have, counted before it is decoded.

The decoder is one call of C and holds the interpreter: two million empty elements are a fifth of a second of
everybody's, in whatever thread. This walk gives way as any Python does, and ends with the first element that is too
much. It looks into nothing that has no lists. Texts are measured afterwards (`message_limits.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

MOST_FIELDS = 500_000
"Ours: of a message, where there are lists; genuine ones at their largest have a third of it."
_BROKEN = "the message cannot be decoded"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {FieldDescriptor.CPPTYPE_DOUBLE: 8, FieldDescriptor.CPPTYPE_FLOAT: 4}
_GOES_ON = bytes(range(128, 256))
"Bytes of a varint that has not ended."


@dataclass(frozen=True, slots=True)
class FieldLimit:
    """One field, as it is looked at."""

    name: str
    elements: int
    "0: neither list nor map."
    is_apart: bool
    "Its elements do not count towards those of the whole message."
    size: int
    "Bytes of a text in it; 0: no text, nor of the values of a map."
    key_size: int
    "Bytes of a key; 0: no map with texts for keys."
    is_map: bool
    has_messages: bool


@dataclass(slots=True)
class _Row:
    """One field as it is met."""

    limit: FieldLimit
    inside: Fields | None
    "Of its messages, where they have lists."
    is_packed: bool
    "A list of numbers: one run of bytes has many."
    width: int
    "Of one of those in bytes; 0: they are varints."


@dataclass(slots=True)
class Fields:
    """Of one kind of message, by number: those that are lists, or have some below."""

    rows: dict[int, _Row] = field(default_factory=dict)


def fields_of(kind: Any, limit_of: Callable[[FieldDescriptor], FieldLimit], known: dict[str, Fields]) -> Fields:
    """Made once a kind; `known` has those of all kinds, each whole: several threads ask at a time."""
    found = known.get(kind.full_name)
    if found is None:
        made: dict[str, Fields] = {}
        found = _make(kind, limit_of, made)
        known.update(made)
    return found


def _make(kind: Any, limit_of: Callable[[FieldDescriptor], FieldLimit], made: dict[str, Fields]) -> Fields:
    found = made.get(kind.full_name)
    if found is None:
        found = made[kind.full_name] = Fields()  # before its rows: a kind may stand in itself
        for one in kind.fields:
            inner = one.message_type
            inside = _make(inner, limit_of, made) if inner is not None and _has_lists(inner, set()) else None
            if one.is_repeated or inside is not None:
                packed = one.is_repeated and one.cpp_type not in {
                    FieldDescriptor.CPPTYPE_MESSAGE,
                    FieldDescriptor.CPPTYPE_STRING,
                }
                found.rows[one.number] = _Row(limit_of(one), inside, packed, _WIDTHS.get(one.cpp_type, 0))
    return found


def _has_lists(kind: Any, seen: set[str]) -> bool:
    if kind.full_name in seen:
        return False
    seen.add(kind.full_name)
    return any(
        one.is_repeated or (one.message_type is not None and _has_lists(one.message_type, seen)) for one in kind.fields
    )


def explain_elements(fields: Fields, data: bytes, together: int) -> str:
    """What is too much; empty when nothing is. Broken encodings are told as well: the decoder would stumble later."""
    try:
        return _Walk(data, together).run(fields)
    except IndexError:
        return _BROKEN


class _Walk:
    def __init__(self, data: bytes, together: int) -> None:
        self._data = data
        self._together = self._left = together
        self._steps = MOST_FIELDS

    def run(self, fields: Fields) -> str:
        waiting = [(fields, 0, len(self._data))]
        while waiting:
            excess = self._level(*waiting.pop(), waiting)
            if excess:
                return excess
        return ""

    def _level(self, fields: Fields, at: int, end: int, waiting: list[tuple[Fields, int, int]]) -> str:
        data, rows, counts = self._data, fields.rows, dict[int, int]()
        while at < end:
            self._steps -= 1
            if self._steps < 0:
                return f"the message has over {MOST_FIELDS} fields"
            tag, at = _varint(data, at)
            row, size, start = rows.get(tag >> 3), 0, at
            form = tag & 7
            if form == _BYTES:
                size, start = _varint(data, at)
                at = start + size
            elif form == _VARINT:
                _, at = _varint(data, at)
            elif form in {_FIXED64, _FIXED32}:
                at += 8 if form == _FIXED64 else 4
            else:
                return _BROKEN  # groups: no protocol of ours has them
            if row is None:
                continue
            if row.limit.elements:
                number = _packed(row, data[start:at]) if row.is_packed and form == _BYTES else 1
                counts[tag >> 3] = counts.get(tag >> 3, 0) + number
                if counts[tag >> 3] > row.limit.elements:
                    return f"{row.limit.name} has over {row.limit.elements} elements"
                self._left -= 0 if row.limit.is_apart else number
                if self._left < 0:
                    return f"the message has over {self._together} elements"
            if row.inside is not None and size:
                waiting.append((row.inside, start, at))
        return "" if at == end else _BROKEN


def _packed(row: _Row, run: bytes) -> int:
    return len(run) // row.width if row.width else len(run.translate(None, _GOES_ON))


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
