"""Quoting of user-provided names and texts in messages."""

from __future__ import annotations


def quoted(text: object) -> str:
    """Return the text in double quotes with invisible characters escaped, like Go's %q, which scripts expect from
    upstream."""
    import json  # messages are rare, and every command loads this module

    return json.dumps(str(text), ensure_ascii=False)


MAX_TEXT = 16_384
"Characters (ours). A peer may send megabytes, and a process that dials again logs its error each time."


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text; of a longer one its beginning, and a mark."""
    return text if len(text) <= limit else f"{text[:limit]}…"
