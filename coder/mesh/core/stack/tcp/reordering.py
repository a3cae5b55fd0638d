"""Reordering window: how much later than its successors a segment may arrive without counting as lost.

Obeys: RFC 8985 section 6.2 step 4.
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import DUPLICATE_THRESHOLD
from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.scoreboard import Scoreboard
from coder.mesh.core.stack.tcp.timers import NEVER

_PERSIST = 16
"""RFC 8985 section 6.2, step 4: recoveries without a duplicate after which the window is small again."""
_MAX_MULT = 16
"""Ours: quarters of the shortest round trip; the smoothed one bounds the window anyway."""


class ReorderingWindow:
    """RACK's reordering window in seconds; grows while the peer reports needless retransmissions."""

    __slots__ = ("_board", "_dsack_round", "_mult", "_persist", "_rtt")

    def __init__(self, board: Scoreboard, rtt: RoundTrip) -> None:
        self._board = board
        self._rtt = rtt
        self._mult = 1
        "RFC 8985: RACK.reo_wnd_mult."
        self._dsack_round = 0
        "RFC 8985: RACK.dsack_round."
        self._persist = 0
        "RFC 8985: RACK.reo_wnd_persist."

    def on_dsack(self, una: int, nxt: int) -> None:
        """Grow the window after a D-SACK, one step a round trip. `una`, `nxt`: SND.UNA and SND.NXT."""
        # RFC 8985 section 6.2, step 4: one step a round trip however many duplicates are reported, since all of a
        # flight report the same reordering.
        if una >= self._dsack_round:
            self._mult = min(self._mult + 1, _MAX_MULT)
            self._dsack_round = nxt
            self._persist = _PERSIST

    def recovered(self) -> None:
        """Count a finished recovery: a window needed on an earlier path must not delay repairs on this one for ever."""
        if self._persist:
            self._persist -= 1
            if not self._persist:
                self._mult = 1

    def size(self, is_open: bool, mss: int) -> float:
        """Return the current window; `is_open`: no loss is being repaired.

        A path without reordering gets no delay once it is in recovery or three segments are ahead, which is the classic
        rule of RFC 5681 3.2.
        """
        board = self._board
        if not board.reordering_seen and (not is_open or board.sacked >= DUPLICATE_THRESHOLD * mss):
            return 0.0
        shortest = self._rtt.minimum
        # RACK uses quarters of the minimum; without one (no sample yet, or a new path) the classic rule applies.
        if shortest == NEVER:
            return 0.0
        # At most one round trip: on a path with more reordering, repairing is faster (RFC 8985 section 6.2, step 4).
        return min(self._mult * shortest / 4, self._rtt.srtt)
