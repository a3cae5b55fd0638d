"""What is kept of a User-Agent header: anybody may write anything there, of any length."""

from __future__ import annotations

LONGEST = 512


def kept(header: str) -> str:
    """The beginning, without what cannot be stored or shown."""
    return "".join(letter for letter in header[:LONGEST] if letter.isprintable())
