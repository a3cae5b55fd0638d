"""Stored part of a User-Agent header: clients may send any text of any length."""

from __future__ import annotations

LONGEST = 512


def kept(header: str) -> str:
    """Return the beginning, without characters that cannot be stored or displayed."""
    return "".join(letter for letter in header[:LONGEST] if letter.isprintable())
