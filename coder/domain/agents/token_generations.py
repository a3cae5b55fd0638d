"""Which of an agent's tokens are good while one is being rotated, and which one to hand out.

Generation 0 is the template's; each rotation adds one. The first use of a generation ends all that are older: until the
machine shows the new token, the old one goes on working, so a rotation cuts nobody off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Generation:
    number: int
    used: bool


FIRST = Generation(0, used=True)
"The template's own counts as used: nothing older can be good."


def good(rotated: Sequence[Generation]) -> tuple[int, ...]:
    """The generations that let an agent in, oldest first."""
    everything = [FIRST, *rotated]
    in_use = max(one.number for one in everything if one.used)
    return tuple(sorted(one.number for one in everything if one.number >= in_use))


def newest(rotated: Sequence[Generation]) -> int:
    """What a machine that is attached now should be given."""
    return max(one.number for one in [FIRST, *rotated])
