"""Token generations of an agent: the valid ones during a rotation, and the one to hand out.

Generation 0 is the template's; each rotation adds one. The first use of a generation invalidates all older ones. Until
the machine uses the new token, the old one stays valid, so a rotation disconnects no machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Generation:
    number: int
    used: bool


FIRST = Generation(0, used=True)
"""The template's own generation counts as used: none is older."""


def good(rotated: Sequence[Generation]) -> tuple[int, ...]:
    """Return the valid generations, oldest first."""
    everything = [FIRST, *rotated]
    in_use = max(item.number for item in everything if item.used)
    return tuple(sorted(item.number for item in everything if item.number >= in_use))


def newest(rotated: Sequence[Generation]) -> int:
    """Return the generation to hand to a newly attached machine."""
    return max(item.number for item in [FIRST, *rotated])
