"""Loss detection from acknowledgements.

Lives here: reading SACK blocks, and when a hole counts as a loss. Results are marked on the scoreboard.
Does not live here: the reaction to a loss (recovery.py), the time allowed for reordering (reordering.py).
Obeys: RFC 8985 section 6.2 (RACK), RFC 2883 (duplicate SACK); without SACK RFC 5681 section 3.2 and RFC 6582.
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import DUPLICATE_THRESHOLD
from coder.mesh.core.stack.tcp.agreement import Agreement
from coder.mesh.core.stack.tcp.reordering import ReorderingWindow
from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.scoreboard import Scoreboard
from coder.mesh.core.stack.tcp.sender import Sender
from coder.mesh.core.stack.tcp.sequence import HALF, MASK
from coder.mesh.core.stack.tcp.tail_probe import TailProbe
from coder.mesh.core.stack.tcp.timers import NEVER, Timers

Blocks = tuple[tuple[int, int], ...]


class LossDetector:
    """Loss detector of a connection; keeps the reordering timer."""

    __slots__ = ("_agreed", "_board", "_probe", "_reordering", "_rtt", "_sender", "_timers", "dup_acks")

    def __init__(
        self,
        sender: Sender,
        timers: Timers,
        rtt: RoundTrip,
        agreed: Agreement,
        board: Scoreboard,
        probe: TailProbe,
    ) -> None:
        self._sender = sender
        self._timers = timers
        self._rtt = rtt
        self._agreed = agreed
        self._board = board
        self._probe = probe
        self._reordering = ReorderingWindow(board, rtt)
        self.dup_acks = 0
        "Duplicate acknowledgements in a row, without SACK: with SACK the blocks say more than their number."

    def on_sack(self, ack: int, blocks: Blocks, echoed: float, now: float) -> None:
        """Record SACK blocks. `ack`: this acknowledgement's number; `echoed`: when we sent the timestamp it echoes."""
        una = self._sender.snd_una
        # At most four blocks fit into a header (RFC 2018 section 3), so a hostile peer cannot make this loop long.
        for index, (left32, right32) in enumerate(blocks):
            left = una + ((left32 - una + HALF) & MASK) - HALF
            # The length from the block alone, so that both edges lie on one side of the wrap.
            right = left + ((right32 - left32) & MASK)
            # Nearest to SND.UNA: half the number space lies before it, half behind, and blocks may lie on either side.
            if right > self._sender.snd_nxt or right <= left:
                continue  # never sent: a broken peer
            # RFC 2883 section 4: the first block reports a duplicate when it lies below the acknowledgement, or inside
            # the second block.
            if left < ack or (index == 0 and len(blocks) > 1 and _inside(blocks[0], blocks[1])):
                if index == 0 and (right <= ack or len(blocks) > 1):
                    self._on_dsack()
                    continue
                if right <= ack:
                    continue
            # Bytes below SND.UNA are no longer on the scoreboard; a block may begin there when acknowledgements are
            # reordered.
            self._board.sack(max(left, una), right, now, echoed, self._rtt.minimum)

    def _on_dsack(self) -> None:
        """Process a D-SACK: a segment was retransmitted needlessly."""
        # A segment that was retransmitted needlessly had only been late: RACK is to wait longer (RFC 8985 section 6.2,
        # step 4).
        self._reordering.on_dsack(self._sender.snd_una, self._sender.snd_nxt)
        # RFC 8985 section 7.4.2: a duplicate after a probe is the probe.
        self._probe.on_dsack()

    def count_dup_ack(self) -> None:
        """Count a duplicate acknowledgement, from a peer without SACK."""
        self.dup_acks += 1

    def recovered(self) -> None:
        """Note that the loss is repaired, or was spurious."""
        self.dup_acks = 0
        self._reordering.recovered()

    def reset_dup_acks(self) -> None:
        """Reset the count of duplicate acknowledgements."""
        self.dup_acks = 0

    def detect(self, now: float, mss: int, recovery_point: int, *, is_open: bool, progress: bool) -> int:
        """Mark what this acknowledgement shows to be lost; return the bytes newly marked.

        With SACK there has to be a hole. `is_open`: no loss is being repaired, else everything below `recovery_point`
        is; `progress`: it acknowledged new data.
        """
        if self._agreed.sack:
            return self.on_reordering_timer(now, mss, is_open=is_open)
        una = self._sender.snd_una
        if is_open:
            # RFC 5681 section 3.2: the third duplicate. Fewer may come from two reordered packets.
            if self.dup_acks < DUPLICATE_THRESHOLD:
                return 0
            # RFC 6582 section 3.2, step 2: duplicates count only after more is acknowledged than was outstanding when
            # the last loss was found. After a timeout the whole flight is retransmitted, and the copies cause such
            # duplicates.
            if una <= recovery_point:
                return 0
        elif progress and una < recovery_point:
            self.dup_acks = 0  # a partial acknowledgement: the next hole begins here (RFC 6582 3.2 step 3)
        else:
            return 0
        # Without SACK nothing is known beyond the first hole (RFC 6582 section 3.2). One segment is marked; the next
        # partial acknowledgement shows the next hole.
        return self._board.mark_first_lost()

    def on_reordering_timer(self, now: float, mss: int, *, is_open: bool) -> int:
        """Mark segments beyond their reordering window, and set the timer for the others; return the bytes newly
        marked."""
        # RFC 8985 section 6.2, step 5: the timer is for the segment that has longest to wait; an acknowledgement checks
        # earlier.
        news, wait = self._board.detect(now, self.reordering_window(mss, is_open=is_open))
        self._timers.set_reordering(now + wait if wait > 0 else NEVER)
        return news

    def reordering_window(self, mss: int, *, is_open: bool) -> float:
        """Return the reordering window in seconds."""
        return self._reordering.size(is_open, mss)

    def stop_reordering_timer(self) -> None:
        """Stop the reordering timer: no hole is left."""
        self._board.in_order()
        self._timers.set_reordering(NEVER)


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    # On 32-bit numbers: a block may lie across the wrap.
    return (inner[0] - outer[0]) & MASK < HALF and (outer[1] - inner[1]) & MASK < HALF
