"""Texts of a peer, cut to what a log line or an error may have."""

from __future__ import annotations

MAX_TEXT = 16_384
"Characters (ours). A peer may send megabytes, and a process that dials again logs its error each time."


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text; of a longer one its beginning, and a mark."""
    return text if len(text) <= limit else f"{text[:limit]}…"
