"""Losses that were none: the acknowledgement of the original arrives after it was sent again.

Obeys: RFC 3522 (Eifel detection, by timestamps). All of the reduction is undone, as nothing was lost (RFC 9438 4.9).
"""

from __future__ import annotations

from coder.mesh.core.stack.tcp.congestion import Cubic, Snapshot
from coder.mesh.core.stack.tcp.sequence import HALF, MASK


class SpuriousLoss:
    """What is needed to take back one reduction of the window."""

    __slots__ = ("_before", "sent_at")

    def __init__(self) -> None:
        # Of the first reduction: losses found while one is repaired do not reduce again (RFC 6675 section 5).
        self._before: Snapshot | None = None
        self.sent_at = -1
        "Our timestamp when the first range was sent again, or -1: none was yet."

    @property
    def is_possible(self) -> bool:
        """Whether a reduction could still turn out to be needless."""
        return self._before is not None

    def begin(self, before: Snapshot | None = None) -> None:
        """A loss was found; `before`: the window until then, None: what is kept stays."""
        if before is not None:
            self._before = before
        self.sent_at = -1

    def on_retransmit(self, clock: int) -> None:
        """Something is sent again, at this value of our timestamp clock."""
        if self.sent_at < 0:
            # The earliest copy decides (RFC 3522 section 3.2, RetransmitTS): an echo older than that belongs to no
            # copy at all.
            self.sent_at = clock

    def end(self) -> None:
        """What was lost has been repaired."""
        self._before = None

    def undo(self, tsecr: int, cubic: Cubic) -> bool:
        """An acknowledgement echoes `tsecr`: if that was sent before we sent again, the original had arrived."""
        # An echo of what was sent before the repair can only be the original's (RFC 3522 section 3.2). Equal stamps
        # prove nothing: the clock may have stood still between both.
        if self.sent_at < 0 or self._before is None or (tsecr - self.sent_at) & MASK < HALF:
            return False
        # Once: what the reduction cost is given back, and the next loss stands for itself.
        cubic.restore(self._before)
        self._before = None
        return True
