"""Sequence numbers: absolute inside, 32 bits on the wire.

Obeys: RFC 9293 section 3.4. The RFC's arithmetic is modulo 2**32, and every comparison there compares distances.
Numbers in this package are not wrapped, so that `<` means "earlier"; only packed and parsed numbers have 32 bits.
"""

from __future__ import annotations

MASK = 0xFFFFFFFF
HALF = 1 << 31


def nearest(reference: int, number: int) -> int:
    """Return the absolute number that is nearest to `reference` and has `number` as its lower 32 bits."""
    # Adding half of the space before the mask, and subtracting it after, makes the remainder a signed distance:
    # RFC 9293 section 3.4 gives a number meaning only within 2**31 of another. Python's integers do not overflow, so no
    # lap is ever counted.
    return reference + ((number - reference + HALF) & MASK) - HALF
