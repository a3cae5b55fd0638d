"""The type of a notification's template."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class MessageTemplate:
    id: UUID
    name: str
    group: str
    title: str
    body: str
    "Markdown."
    actions: str = "[]"
    "JSON: a list of `{label, url}`."
    enabled_by_default: bool = True
    kind: str = "system"
