"""Differences between two versions of a template: parameters and files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from coder.domain.templates.parameters import Definition

Change = Literal["added", "removed", "changed"]

MAX_LINES = 2000
"""Lines of a compared file: the comparison takes up to the square of it."""
MAX_BYTES = 256 << 10
"""Bytes of a compared file, and of all differences together."""
MAX_FILES = 200
"""Files of a comparison."""

_COMPARED = (
    "type",
    "form_type",
    "mutable",
    "default_value",
    "options",
    "required",
    "ephemeral",
    "validation_regex",
    "validation_min",
    "validation_max",
    "validation_monotonic",
)
"""Attributes of a definition that decide about values."""


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """Parameter that two versions declare differently."""

    name: str
    change: Change
    fields: list[str]
    """Attributes that differ, of a changed parameter."""
    required: bool
    """Whether the new version has no default for it."""


def compare_parameters(old: Sequence[Definition], new: Sequence[Definition]) -> list[ParameterChange]:
    """Return the parameters that differ, in the order of the new version; removed ones last."""
    before = {definition.name: definition for definition in old}
    changes: list[ParameterChange] = []
    for definition in new:
        known = before.pop(definition.name, None)
        if known is None:
            changes.append(ParameterChange(definition.name, "added", [], definition.required))
            continue
        fields = [name for name in _COMPARED if getattr(known, name) != getattr(definition, name)]
        if fields:
            changes.append(ParameterChange(definition.name, "changed", fields, definition.required))
    return changes + [ParameterChange(name, "removed", [], False) for name in before]


@dataclass(frozen=True, slots=True)
class FileChange:
    """File that differs between two versions."""

    path: str
    change: Change
    diff: str
    """Unified diff; "" for files that are not text or too large."""


def compare_files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> tuple[list[FileChange], int]:
    """Return the files that differ, by path, and the number of further ones beyond `MAX_FILES`."""
    paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    room = MAX_BYTES
    changes: list[FileChange] = []
    for path in paths[:MAX_FILES]:
        diff = _diff(path, old.get(path, b""), new.get(path, b""))
        diff = diff if len(diff) <= room else ""
        room -= len(diff)
        change: Change = "added" if path not in old else "removed" if path not in new else "changed"
        changes.append(FileChange(path, change, diff))
    return changes, len(paths) - len(changes)


def _diff(path: str, old: bytes, new: bytes) -> str:
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return ""
    return "\n".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm=""))


def _lines(content: bytes) -> list[str] | None:
    """Return the lines of a text; None for other files and for large ones."""
    if len(content) > MAX_BYTES or b"\x00" in content:
        return None
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        return None
    return lines if len(lines) <= MAX_LINES else None
