"""Quoting of user-provided names and texts in messages."""

from __future__ import annotations


def quoted(text: object) -> str:
    """Return the text in double quotes with invisible characters escaped, like Go's %q, which scripts expect from
    upstream."""
    import json  # messages are rare, and every command loads this module

    return json.dumps(str(text), ensure_ascii=False)
