"""Limits of a peer's message: elements of each list and map, bytes of each text.

A peer chooses the content of 4 MiB: two bytes make an element, and a server's work for one element is a thousand times
that. So every message is measured before any further work, by a table over the fields of the protocol. The table of the
protocols a server answers is `request_limits.py`; the caller is `calls.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from coder.rpc.wire_elements import FieldLimit, Fields, explain_elements, fields_of

if TYPE_CHECKING:
    from coder.rpc.wire_elements import FieldKind, MessageKind

_TEXTS = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})


@dataclass(frozen=True, slots=True)
class FieldDefaults:
    """Default limits of fields without a row of their own."""

    elements: int
    size: int
    "Bytes of one text."


class MessageLimits:
    """Limits of protocols: a default for each package, rows for the fields that differ."""

    def __init__(
        self,
        packages: Mapping[str, FieldDefaults],
        elements: Mapping[str, int],
        sizes: Mapping[str, int],
        *,
        total: int,
    ) -> None:
        """`total`: elements of all lists and maps of a message; a list that may exceed it alone is counted
        separately."""
        self._packages = packages
        self._elements = elements
        self._sizes = sizes
        self._total = total
        self._fields: dict[str, FieldLimit] = {}
        self._harmless: dict[str, int] = {}
        self._walked: dict[str, Fields] = {}

    def explain_excess(self, message: Message) -> str:
        """Return the exceeded limit of `message`; empty when all are kept."""
        remaining = self._total
        queue: list[Message] = [message]
        while queue:
            for field, value in queue.pop().ListFields():
                limit = self._fields.get(field.full_name) or self.of(field)
                if limit.elements:
                    count = len(value)
                    if count > limit.elements:
                        return f"{limit.name} has {count} elements, over the limit of {limit.elements}"
                    if not limit.is_apart:
                        remaining -= count
                        if remaining < 0:
                            return f"the message has over {self._total} elements"
                excess = ""
                if limit.is_map:
                    excess = _explain_entries(limit, value)
                    if limit.has_messages:
                        queue.extend(value.values())
                elif limit.has_messages:
                    queue.extend(value if limit.elements else (value,))
                elif limit.size:
                    excess = _explain_texts(limit, value if limit.elements else (value,))
                if excess:
                    return excess
        return ""

    def explain_encoded(self, kind: MessageKind, data: bytes) -> str:
        """Return the exceeded element limit of an encoded message; empty when all are kept. Called before large
        messages are decoded."""
        return explain_elements(fields_of(kind, self.of, self._walked), data, self._total)

    def of(self, field: FieldKind) -> FieldLimit:
        """Return the limits of one field."""
        limit = self._fields.get(field.full_name)
        if limit is None:
            limit = self._fields[field.full_name] = self._make(field)
        return limit

    def harmless_size(self, kind: MessageKind) -> int:
        """Return the bytes up to which no message of this kind can exceed a limit."""
        limit = self._harmless.get(kind.full_name)
        if limit is None:
            limit = self._harmless[kind.full_name] = min(
                (min(_bounds(self.of(field))) for field in fields_below(kind) if any(_bounds(self.of(field)))),
                default=1 << 62,
            )
        return limit

    def _make(self, field: FieldKind) -> FieldLimit:
        name, inner = field.full_name, field.message_type
        parent = field.containing_type
        defaults = self._packages[parent.file.package if parent is not None else ""]
        elements = self._elements.get(name, defaults.elements) if field.is_repeated else 0
        size, key_size, is_map = self._size(field, defaults), 0, False
        if inner is not None and inner.GetOptions().map_entry:
            is_map = True
            key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
            key_size, size, inner = self._size(key, defaults), self._size(value, defaults), value.message_type
        return FieldLimit(name, elements, elements > self._total, size, key_size, is_map, inner is not None)

    def _size(self, field: FieldKind, defaults: FieldDefaults) -> int:
        return self._sizes.get(field.full_name, defaults.size) if field.type in _TEXTS else 0


def fields_below(kind: MessageKind) -> list[FieldKind]:
    """Return every field of a message and of the messages in it, each once; a map's key and value are not listed
    separately."""
    limit: dict[str, FieldKind] = {}
    visited: set[str] = set()
    queue = [kind]
    while queue:
        for field in queue.pop().fields:
            limit[field.full_name] = field
            inner = field.message_type
            if inner is not None and inner.GetOptions().map_entry:
                inner = inner.fields_by_name["value"].message_type
            if inner is not None and inner.full_name not in visited:
                visited.add(inner.full_name)
                queue.append(inner)
    return list(limit.values())


def _bounds(limit: FieldLimit) -> list[int]:
    return [bound for bound in (limit.elements, limit.size, limit.key_size) if bound]


def _explain_entries(limit: FieldLimit, entries: Mapping[str, str | bytes]) -> str:
    """Return the exceeded limit of a map's keys and texts; `size` is zero for a map of messages."""
    for key in entries:
        if limit.key_size and _is_longer(key, limit.key_size):
            return f"a key of {limit.name} is over the limit of {limit.key_size} bytes"
        if limit.size and _is_longer(entries[key], limit.size):
            return f"a value of {limit.name} is over the limit of {limit.size} bytes"
    return ""


def _explain_texts(limit: FieldLimit, texts: Iterable[str | bytes]) -> str:
    """Return the exceeded limit of a field's texts."""
    if any(_is_longer(text, limit.size) for text in texts):
        return f"{limit.name} is over the limit of {limit.size} bytes"
    return ""


def _is_longer(text: str | bytes, size: int) -> bool:
    if len(text) > size:
        return True
    return isinstance(text, str) and len(text) * 4 > size and len(text.encode()) > size
