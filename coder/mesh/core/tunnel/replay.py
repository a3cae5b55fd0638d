"""Replay window: every packet is delivered at most once.

Lives here: the sliding window of 8128 packets.
Does not live here: limits on counters (keypairs.py).
Obeys: RFC 6479 in effect, not in layout. The state is the set of counters *missing* below the newest, as one integer:
zero on an orderly path, where advancing by one changes nothing, and never more than a few kilobytes.
"""

from __future__ import annotations

from coder.mesh.core.tunnel.constants import REPLAY_WINDOW

_ALL = (1 << REPLAY_WINDOW) - 1
# Ours: growth of the integer before bits outside of the window are shifted away; each shift copies it.
_SLACK = 3 * REPLAY_WINDOW


class ReplayWindow:
    """`newest` is the highest accepted counter, -1 before the first. The hot path advances it by one directly."""

    __slots__ = ("_base", "_missing", "newest")

    def __init__(self) -> None:
        self.newest = -1
        self._missing = 0  # bit i: counter _base + i has not been seen
        self._base = 0

    def is_new(self, counter: int) -> bool:
        """Return whether a packet with this counter may still be delivered."""
        if counter > self.newest:
            return True
        # Below the base all counters were seen or are too old to know: both are refused, as the paper (5.4.6) prefers
        # loss to a replay.
        if self.newest - counter > REPLAY_WINDOW or counter < self._base:
            return False
        return self._missing >> (counter - self._base) & 1 == 1

    def accept(self, counter: int) -> None:
        """Record a counter for which `is_new` was true and whose packet was genuine."""
        after = self.newest + 1
        if counter < after:
            # Only after the tag was verified: a forged counter must not move the window.
            self._missing &= ~(1 << (counter - self._base))
            return
        gap = counter - after
        self.newest = counter
        # Everything older is outside of the window: late arrivals of the last 8128 stay acceptable, none was seen.
        if gap >= REPLAY_WINDOW:
            self._missing = _ALL
            self._base = counter - REPLAY_WINDOW
        elif gap:
            self._open_gap(after, gap)

    def _open_gap(self, start: int, gap: int) -> None:
        # Nothing missing so far: the integer begins at the gap, and stays small.
        if not self._missing:
            self._base = start
        elif start + gap - self._base > _SLACK:
            # Bits outside of the window are shifted away in one step.
            drop = start + gap - REPLAY_WINDOW - self._base
            self._missing >>= drop
            self._base += drop
        self._missing |= ((1 << gap) - 1) << (start - self._base)
