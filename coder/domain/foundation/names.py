"""Valid names of templates, workspaces, versions and daemons. Generated names come from `base/ids.py`."""

from __future__ import annotations

import re

MAX_NAME = 32
MAX_DISPLAY_NAME = 64
MAX_VERSION_NAME = 64

_NAME = re.compile(r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")
_VERSION_NAME = re.compile(r"[a-zA-Z0-9]+(?:[_.-][a-zA-Z0-9]+)*")
_DISPLAY_NAME = re.compile(r"\S(?:.*\S)?", re.DOTALL)
RESERVED = frozenset({"new", "create"})
"""Names that page addresses such as /templates/new would hide."""


def is_name(text: str) -> bool:
    """Return whether `text` can name a user, workspace, template, group or organization."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None and text not in RESERVED


def is_display_name(text: str) -> bool:
    """Return whether `text` has up to 64 characters and no blanks at its ends; it may be empty."""
    return not text or (len(text) <= MAX_DISPLAY_NAME and _DISPLAY_NAME.fullmatch(text) is not None)


def is_version_name(text: str) -> bool:
    """Return whether `text` can name a template version: dots and underscores may join its parts, too."""
    return len(text) <= MAX_VERSION_NAME and _VERSION_NAME.fullmatch(text) is not None


def is_word(text: str) -> bool:
    """Return whether `text` has ASCII letters and digits only, as ids of keys have: other texts match no key."""
    return text.isascii() and text.isalnum()


def name_from(text: str, fallback: str) -> str:
    """Return the nearest valid name to `text` (a file's, a host's), or `fallback` when no character is left."""
    result = re.sub(r"[^a-zA-Z0-9]+", "-", text).strip("-")[:MAX_NAME].strip("-")
    return result if is_name(result) else fallback
