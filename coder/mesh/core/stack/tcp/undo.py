"""Spurious losses: the acknowledgement of the original arrives after the retransmission.

Obeys: RFC 3522 (Eifel detection, by timestamps). The whole reduction is undone, as nothing was lost (RFC 9438 4.9).
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.congestion import Cubic, Snapshot
from coder.mesh.core.stack.tcp.sequence import HALF, MASK


class SpuriousLoss:
    """State to undo one reduction of the window."""

    __slots__ = ("_before", "retransmit_ts")

    def __init__(self) -> None:
        # From the first reduction: losses found during a repair do not reduce again (RFC 6675 section 5).
        self._before: Snapshot | None = None
        self.retransmit_ts = -1
        "Our timestamp at the first retransmission, or -1: there was none yet."

    @property
    def is_possible(self) -> bool:
        """Whether a reduction could still prove needless."""
        return self._before is not None

    def begin(self, before: Snapshot | None = None) -> None:
        """Record a loss; `before`: the window until then, None: keep the recorded one."""
        if before is not None:
            self._before = before
        self.retransmit_ts = -1

    def on_retransmit(self, clock: int) -> None:
        """Record the value of our timestamp clock at a retransmission."""
        if self.retransmit_ts < 0:
            # The earliest copy decides (RFC 3522 section 3.2, RetransmitTS): an echo older than that belongs to no copy
            # at all.
            self.retransmit_ts = clock

    def end(self) -> None:
        """Forget the reduction: the loss has been repaired."""
        self._before = None

    def undo(self, tsecr: int, cubic: Cubic) -> bool:
        """Undo the reduction if an acknowledgement echoes a timestamp from before the retransmission; return whether
        so."""
        # An echo of a timestamp from before the repair can only come from the original (RFC 3522 section 3.2). Equal
        # stamps prove nothing: the clock may not have advanced in between.
        if self.retransmit_ts < 0 or self._before is None or (tsecr - self.retransmit_ts) & MASK < HALF:
            return False
        # Only once: the reduction is undone, and the next loss counts as a new one.
        cubic.restore(self._before)
        self._before = None
        return True
