"""Whole numbers that people write: of any length, in time that does not depend on it."""

from __future__ import annotations

_LONGEST = 30
"""Digits; all our numbers have fewer. `int` refuses 4301 of them with an unexpected error."""


def decimal(text: str) -> int | None:
    """Parse ASCII digits; None for anything else. Longer numbers are cut to the first 30 digits."""
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text) if len(text) <= _LONGEST else min(int(text.lstrip("0")[: _LONGEST + 1] or "0"), 10**_LONGEST)
