"""Whole numbers that people write: of any length, in time that does not depend on it."""

from __future__ import annotations

_LONGEST = 30
"Digits; everything we count in has fewer. `int` refuses 4301 of them, with an error nobody expects of digits."


def decimal(text: str) -> int | None:
    """ASCII digits as a number; None for anything else. More than 30 of them are as good as the first such number."""
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text) if len(text) <= _LONGEST else min(int(text.lstrip("0")[: _LONGEST + 1] or "0"), 10**_LONGEST)
