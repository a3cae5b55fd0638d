"""How much a message of a peer may hold: elements of each list and map, bytes of each text.

A peer chooses what 4 MiB are made of: two bytes make an element, and the work a server does for one is a thousand times
that. So every message is measured before anybody works on it, by a table over the fields of the protocol. The table of
the protocols a server answers is `request_limits.py`; who asks it is `calls.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from coder.rpc.wire_elements import FieldLimit, Fields, explain_elements, fields_of

_TEXTS = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})


@dataclass(frozen=True, slots=True)
class Most:
    """What fields without a row of their own may hold."""

    elements: int
    size: int
    "Bytes of one text."


class MessageLimits:
    """A table of protocols: a default for each package, rows for the fields that differ."""

    def __init__(
        self,
        packages: Mapping[str, Most],
        elements: Mapping[str, int],
        sizes: Mapping[str, int],
        *,
        together: int,
    ) -> None:
        """`together`: elements of all lists and maps of a message; a list that may have more alone counts apart."""
        self._packages = packages
        self._elements = elements
        self._sizes = sizes
        self._together = together
        self._fields: dict[str, FieldLimit] = {}
        self._harmless: dict[str, int] = {}
        self._walked: dict[str, Fields] = {}

    def explain_excess(self, message: Message) -> str:
        """What of `message` is too much; empty when nothing is."""
        left = self._together
        waiting: list[Message] = [message]
        while waiting:
            for field, value in waiting.pop().ListFields():
                limit = self._fields.get(field.full_name) or self.of(field)
                if limit.elements:
                    count = len(value)
                    if count > limit.elements:
                        return f"{limit.name} has {count} elements, over the limit of {limit.elements}"
                    if not limit.is_apart:
                        left -= count
                        if left < 0:
                            return f"the message has over {self._together} elements"
                excess = _explain_inside(limit, value, waiting)
                if excess:
                    return excess
        return ""

    def explain_encoded(self, kind: Any, data: bytes) -> str:
        """What an encoded message has too many elements of; empty when nothing. Asked before large ones are decoded."""
        return explain_elements(fields_of(kind, self.of, self._walked), data, self._together)

    def of(self, field: FieldDescriptor) -> FieldLimit:
        """The row of one field."""
        found = self._fields.get(field.full_name)
        if found is None:
            found = self._fields[field.full_name] = self._make(field)
        return found

    def harmless_size(self, kind: Any) -> int:
        """Bytes up to which no message of this kind can hold too much of anything."""
        found = self._harmless.get(kind.full_name)
        if found is None:
            found = self._harmless[kind.full_name] = min(
                (min(_bounds(self.of(field))) for field in fields_below(kind) if any(_bounds(self.of(field)))),
                default=1 << 62,
            )
        return found

    def _make(self, field: Any) -> FieldLimit:
        name, inner = field.full_name, field.message_type
        most = self._packages[field.containing_type.file.package]
        elements = self._elements.get(name, most.elements) if field.is_repeated else 0
        is_map = inner is not None and bool(inner.GetOptions().map_entry)
        size, key_size = self._size(field, most), 0
        if is_map:
            key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
            key_size, size, inner = self._size(key, most), self._size(value, most), value.message_type
        return FieldLimit(name, elements, elements > self._together, size, key_size, is_map, inner is not None)

    def _size(self, field: FieldDescriptor, most: Most) -> int:
        return self._sizes.get(field.full_name, most.size) if field.type in _TEXTS else 0


def fields_below(kind: Any) -> list[FieldDescriptor]:
    """Every field of a message and of what can stand in it, each once; the two of a map's entries stand in the map."""
    found: dict[str, FieldDescriptor] = {}
    seen: set[str] = set()
    waiting = [kind]
    while waiting:
        for field in waiting.pop().fields:
            found[field.full_name] = field
            inner = field.message_type
            if inner is not None and inner.GetOptions().map_entry:
                inner = inner.fields_by_name["value"].message_type
            if inner is not None and inner.full_name not in seen:
                seen.add(inner.full_name)
                waiting.append(inner)
    return list(found.values())


def _bounds(limit: FieldLimit) -> list[int]:
    return [one for one in (limit.elements, limit.size, limit.key_size) if one]


def _explain_inside(limit: FieldLimit, value: Any, waiting: list[Message]) -> str:
    """What one field's texts have too much; its messages join those that wait."""
    if limit.is_map:
        for key in value:
            if limit.key_size and _is_longer(key, limit.key_size):
                return f"a key of {limit.name} is over the limit of {limit.key_size} bytes"
            if limit.has_messages:
                waiting.append(value[key])
            elif limit.size and _is_longer(value[key], limit.size):
                return f"a value of {limit.name} is over the limit of {limit.size} bytes"
    elif limit.has_messages:
        if limit.elements:
            waiting.extend(value)
        else:
            waiting.append(value)
    elif limit.size:
        for text in value if limit.elements else (value,):
            if _is_longer(text, limit.size):
                return f"{limit.name} is over the limit of {limit.size} bytes"
    return ""


def _is_longer(text: str | bytes, size: int) -> bool:
    if len(text) > size:
        return True
    return isinstance(text, str) and len(text) * 4 > size and len(text.encode()) > size
