"""Limits of a peer's message: elements of each list and map, bytes of each text.

A peer chooses the content of 4 MiB: two bytes make an element, and a server's work for one element is a thousand times
that. So every message is measured before any further work, by a table over the fields of the protocol. The table of the
protocols a server answers is `request_limits.py`; the caller is `calls.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from coder.rpc.wire_elements import FieldLimit, Fields, explain_elements, fields_of

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
                excess = _explain_inside(limit, value, queue)
                if excess:
                    return excess
        return ""

    def explain_encoded(self, kind: Any, data: bytes) -> str:
        """Return the exceeded element limit of an encoded message; empty when all are kept. Called before large
        messages are decoded."""
        return explain_elements(fields_of(kind, self.of, self._walked), data, self._total)

    def of(self, field: FieldDescriptor) -> FieldLimit:
        """Return the limits of one field."""
        limit = self._fields.get(field.full_name)
        if limit is None:
            limit = self._fields[field.full_name] = self._make(field)
        return limit

    def harmless_size(self, kind: Any) -> int:
        """Return the bytes up to which no message of this kind can exceed a limit."""
        limit = self._harmless.get(kind.full_name)
        if limit is None:
            limit = self._harmless[kind.full_name] = min(
                (min(_bounds(self.of(field))) for field in fields_below(kind) if any(_bounds(self.of(field)))),
                default=1 << 62,
            )
        return limit

    def _make(self, field: Any) -> FieldLimit:
        name, inner = field.full_name, field.message_type
        defaults = self._packages[field.containing_type.file.package]
        elements = self._elements.get(name, defaults.elements) if field.is_repeated else 0
        is_map = inner is not None and bool(inner.GetOptions().map_entry)
        size, key_size = self._size(field, defaults), 0
        if is_map:
            key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
            key_size, size, inner = self._size(key, defaults), self._size(value, defaults), value.message_type
        return FieldLimit(name, elements, elements > self._total, size, key_size, is_map, inner is not None)

    def _size(self, field: FieldDescriptor, defaults: FieldDefaults) -> int:
        return self._sizes.get(field.full_name, defaults.size) if field.type in _TEXTS else 0


def fields_below(kind: Descriptor) -> list[FieldDescriptor]:
    """Return every field of a message and of the messages in it, each once; a map's key and value are not listed
    separately."""
    limit: dict[str, FieldDescriptor] = {}
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


def _explain_inside(limit: FieldLimit, value: Any, queue: list[Message]) -> str:
    """Return the exceeded limit of one field's texts; add its messages to `queue`."""
    if limit.is_map:
        for key in value:
            if limit.key_size and _is_longer(key, limit.key_size):
                return f"a key of {limit.name} is over the limit of {limit.key_size} bytes"
            if limit.has_messages:
                queue.append(value[key])
            elif limit.size and _is_longer(value[key], limit.size):
                return f"a value of {limit.name} is over the limit of {limit.size} bytes"
    elif limit.has_messages:
        if limit.elements:
            queue.extend(value)
        else:
            queue.append(value)
    elif limit.size:
        for text in value if limit.elements else (value,):
            if _is_longer(text, limit.size):
                return f"{limit.name} is over the limit of {limit.size} bytes"
    return ""


def _is_longer(text: str | bytes, size: int) -> bool:
    if len(text) > size:
        return True
    return isinstance(text, str) and len(text) * 4 > size and len(text.encode()) > size
