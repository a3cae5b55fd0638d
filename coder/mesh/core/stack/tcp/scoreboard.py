"""Scoreboard: which ranges were sent when, which arrived out of order, which are lost.

Lives here: the scoreboard (RFC 6675) and RACK's state (RFC 8985 sections 6.1, 6.2).
Does not live here: the reaction to a loss (recovery.py).

The unit is a run: a range sent at one moment, which usually is a whole batch of up to 44 segments. Per-segment records
would cost more than the rest of sending; runs are split only where SACK blocks or losses cut them.

The peer chooses where its SACK blocks begin and end, so it must not choose how many runs there are. Two rules:

- A block counts only for the whole segments it covers. Its edges are rounded inward to the boundaries of segments as
  they were sent, as Linux does (`tcp_match_skb_to_sack`). A receiver holds whole segments, so the blocks of Linux,
  gVisor and this stack end at such boundaries. An edge elsewhere comes from a segment that was cut differently when it
  was retransmitted (the path's MTU changed), from a window that shrank, or from an attack. Rounding inward is safe in
  each case: SACK is advice (RFC 2018 section 8), and a range that is wrongly missing is acknowledged soon or
  retransmitted. Ignoring such blocks altogether would be as safe, and lose their report of the segments between.
- Beyond `_FREE_RUNS` each run has to hold `_RUN_BYTES` bytes (`_is_full`): small segments bring a run each whatever
  their boundaries, and a peer may announce an MSS of a few bytes.

One acknowledgement costs at most as much as there are runs between SND.UNA and the newest arrival.
"""

from __future__ import annotations

from bisect import bisect_right

_FREE_RUNS = 1024
"""Ours: runs of any size. Ordinary flights have a few hundred: one for each batch, two for each hole."""
_RUN_BYTES = 1024
"""Ours: the bytes that each run beyond `_FREE_RUNS` has to hold. Less than a segment of 1208 bytes, the smallest a
tunnel usually sends, so that a full window of 4 MiB may have a run for each of its segments."""


class Run:
    """A range [start, end) sent at `time` in segments of `size` bytes, counted from `base`; the last may be shorter."""

    __slots__ = ("base", "end", "lost", "retransmitted", "sacked", "size", "start", "time")

    def __init__(self, start: int, end: int, time: float, base: int, size: int) -> None:
        self.start = start
        self.end = end
        self.time = time
        self.base = base
        """Boundary of a segment at or before `start`: a part that was acknowledged or split off may end inside a
        segment."""
        self.size = size
        # RFC 6298 section 3 (Karn): the copy that arrived is unknown, so it gives no sample of the round trip.
        self.retransmitted = False
        "Sent more than once, or at more than one moment."
        self.sacked = False
        self.lost = False
        "Whether it counts as lost and has not been retransmitted yet."

    def __repr__(self) -> str:
        marks = "".join(mark for mark, on in (("s", self.sacked), ("l", self.lost), ("r", self.retransmitted)) if on)
        return f"Run({self.start}..{self.end} {marks})"

    def boundary_from(self, at: int) -> int:
        """Return the first boundary of a segment at or behind `at`, which lies inside the run."""
        boundary = at + (self.base - at) % self.size
        return boundary if boundary < self.end else self.end

    def boundary_before(self, at: int) -> int:
        """Return the last boundary of a segment at or before `at`, which lies inside the run."""
        boundary = at - (at - self.base) % self.size
        return boundary if boundary > self.start else self.start


def _end_of(run: Run) -> int:
    return run.end


class Scoreboard:
    """Runs between SND.UNA and SND.NXT in order of sequence numbers."""

    __slots__ = (
        "_lost_from",
        "delivered",
        "fack",
        "lost",
        "rack_end_seq",
        "rack_rtt",
        "rack_xmit_ts",
        "reordering_seen",
        "retransmissions",
        "runs",
        "sacked",
    )

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.sacked = 0
        "Bytes that arrived out of order."
        self.lost = 0
        "Bytes that count as lost and wait for retransmission."
        self._lost_from = 0
        "No run that ends at or before this number is lost: `next_lost` starts there."
        self.retransmissions = 0
        "Retransmissions since the flight was last in order; with 0 RACK has nothing to find."
        self.delivered = 0
        "Total bytes that arrived."
        self.fack = 0
        "Highest sequence number known to have arrived."
        self.reordering_seen = False
        "Whether a segment sent once ever arrived after a later segment."
        # RACK.xmit_ts, RACK.end_seq and RACK.rtt of RFC 8985: of the segment sent last among all that have arrived.
        self.rack_xmit_ts = -1.0
        self.rack_end_seq = 0
        self.rack_rtt = 0.0

    def sent(self, start: int, end: int, now: float, size: int) -> None:
        """Record new data, sent in segments of `size` bytes; the last may be shorter."""
        runs = self.runs
        if runs and self._extend(len(runs) - 1, end, now, size, False):
            return
        runs.append(Run(start, end, now, start, size))

    def _extend(self, index: int, end: int, now: float, size: int, retransmitted: bool) -> bool:
        """Extend a run to `end` with data sent now; False: the data needs its own run."""
        run = self.runs[index]
        if run.sacked or run.lost:
            return False
        # One batch, one run: it was sent at one moment, and RACK needs only the moment. Behind a short segment the next
        # would lie off the boundaries.
        if (
            run.time == now
            and run.retransmitted == retransmitted
            and run.size == size
            and not (run.end - run.base) % size
        ):
            run.end = end
            return True
        if run.end - run.start >= _RUN_BYTES or not self._is_full:
            return False
        # Small segments share a run. They count as sent when the last of them was: a loss among them is found later,
        # and without a sample of the round trip.
        run.end = end
        run.time = now
        run.retransmitted = True
        run.base = run.start
        run.size = end - run.start
        return True

    @property
    def _is_full(self) -> bool:
        """Whether there are as many runs as the bytes in flight allow."""
        runs = self.runs
        return len(runs) >= _FREE_RUNS and len(runs) >= _FREE_RUNS + (runs[-1].end - runs[0].start) // _RUN_BYTES

    def acknowledge_all(self, end: int, now: float) -> tuple[float, int]:
        """Acknowledge everything below `end`, which is all there is; return (RTT sample, bytes).

        Returns no bytes unless the flight is one run, sent once. Half of `acknowledge`'s work, for conversations.
        """
        runs = self.runs
        if len(runs) != 1:
            return -1.0, 0
        run = runs[0]
        # `rack_xmit_ts`: an older run that arrives after a newer one shows reordering; only `acknowledge` records it.
        if run.retransmitted or run.sacked or run.lost or run.end != end or run.time < self.rack_xmit_ts:
            return -1.0, 0
        sample = now - run.time
        size = end - run.start
        runs.clear()
        self.delivered += size
        self.fack = self.rack_end_seq = end
        self.rack_xmit_ts = run.time
        self.rack_rtt = sample
        self.retransmissions = 0
        return sample, size

    def acknowledge(self, una: int, now: float, echoed: float, shortest: float) -> float:
        """Acknowledge everything below `una`. Return an RTT sample, or -1.

        `echoed`: when the echoed timestamp was sent, or -1 without timestamps; `shortest`: minimum RTT.
        """
        sample = -1.0
        acknowledged = 0
        for run in self.runs:
            if run.start >= una:
                break
            end = run.end if run.end <= una else una
            size = end - run.start
            if run.sacked:
                self.sacked -= size
            else:
                if run.lost:
                    self.lost -= size
                self.delivered += size
                # RFC 6298 section 3 (Karn): the acknowledged copy is unknown, so there is no sample.
                if not run.retransmitted:
                    sample = now - run.time
                    # RFC 8985 section 6.2, step 3: sent once, and later segments came first.
                    if end < self.fack:
                        self.reordering_seen = True
                self._rack(run, end, now, echoed, shortest)
            # A partly acknowledged run keeps its time: RFC 8985 keeps one per segment, here the rest was sent at the
            # same moment.
            if run.end > una:
                run.start = una
                break
            acknowledged += 1
        if acknowledged:
            del self.runs[:acknowledged]
        # RACK.fack of RFC 8985.
        self.fack = max(self.fack, una)
        return sample

    def _rack(self, run: Run, end: int, now: float, echoed: float, shortest: float) -> None:
        """Update RACK's state (RFC 8985 6.2 step 2) to the most recently sent segment that arrived."""
        rtt = now - run.time
        if run.retransmitted and (rtt < shortest or 0 <= echoed < run.time):
            return  # probably the first copy arrived, not the retransmission
        if run.time > self.rack_xmit_ts or (run.time == self.rack_xmit_ts and end > self.rack_end_seq):
            self.rack_xmit_ts = run.time
            self.rack_end_seq = end
        # RFC 8985 section 6.2, step 2: RACK.rtt is that of the newest delivery, also where RACK.xmit_ts stays.
        self.rack_rtt = rtt

    def sack(self, left: int, right: int, now: float, echoed: float, shortest: float) -> int:
        """Mark [left, right) as arrived out of order; return the bytes newly marked.

        Whole segments are marked (see above); when there is no room for more runs, whole runs.
        """
        runs = self.runs
        # Blocks come with every acknowledgement while there is a hole: bisection finds the first run concerned, or a
        # long flight would be scanned thousands of times.
        index = bisect_right(runs, left, key=_end_of)
        news = 0
        while index < len(runs):
            run = runs[index]
            if run.start >= right:
                break
            if run.sacked:
                index += 1
                continue
            if run.start < left:
                index += 1
                cut = run.boundary_from(left)
                # Only where a whole segment follows: the first byte of each would cut a run apart otherwise.
                if cut < (run.end if run.end <= right else run.boundary_before(right)) and not self._is_full:
                    self.split(index - 1, cut)
                continue
            if run.end > right:
                cut = run.boundary_before(right)
                if cut == run.start or self._is_full:
                    break
                self.split(index, cut)
            size = run.end - run.start
            news += size
            if run.lost:
                self.lost -= size
                run.lost = False
            # As for acknowledgements: the order of sending is known only for data that was sent once.
            if not run.retransmitted and run.end < self.fack:
                self.reordering_seen = True
            self.fack = max(self.fack, run.end)
            self._rack(run, run.end, now, echoed, shortest)
            # RFC 2018 section 8: the receiver may renege on a SACK, so the bytes stay in the send queue until the
            # cumulative acknowledgement.
            run.sacked = True
            index = self._join(index) + 1
        self.sacked += news
        # Counted when reported: a later acknowledgement does not count the range again.
        self.delivered += news
        return news

    def split(self, index: int, at: int) -> None:
        """Split the run at a sequence number inside it."""
        run = self.runs[index]
        # Both halves keep the moment of sending, so RACK sees no difference.
        rest = Run(at, run.end, run.time, run.base, run.size)
        rest.retransmitted, rest.sacked, rest.lost = run.retransmitted, run.sacked, run.lost
        run.end = at
        self.runs.insert(index + 1, rest)

    def _join(self, index: int) -> int:
        """Merge a sacked run with sacked neighbours; their times no longer matter. Return the merged run's index."""
        runs = self.runs
        run = runs[index]
        if index + 1 < len(runs) and runs[index + 1].sacked:
            run.end = runs[index + 1].end
            del runs[index + 1]
        if index and runs[index - 1].sacked:
            # Reported one by one, the segments of a long flight would each stay a record otherwise.
            runs[index - 1].end = run.end
            del runs[index]
            return index - 1
        return index

    def detect(self, now: float, window: float) -> tuple[int, float]:
        """Mark what RACK calls lost (RFC 8985 6.2 step 5); `window`: reordering window, seconds.

        Returns (bytes newly lost, seconds until more would be, 0 when nothing is waiting).
        """
        news = 0
        wait = 0.0
        # RFC 8985 6.2 step 5: data sent before the newest arrival, and longer ago than that one took, is overdue.
        limit = self.rack_rtt + window
        time, last = self.rack_xmit_ts, self.rack_end_seq
        for run in self.runs:
            if run.sacked or run.lost:
                continue
            # RACK_sent_after of RFC 8985 section 6.2: segments sent in the same moment are ordered by their ends.
            if run.time > time or (run.time == time and run.end > last):
                if run.retransmitted:
                    continue
                # New data is sent in the order of its numbers, and retransmissions follow their originals: no run
                # behind this one was sent before it.
                break
            left = run.time + limit - now
            if left <= 0:
                self._mark_lost(run)
                news += run.end - run.start
            # The longest wait, as in the RFC's step 5: a timer for each would fire for segments that are still in
            # flight.
            elif left > wait:
                wait = left
        return news, wait

    def _mark_lost(self, run: Run) -> None:
        run.lost = True
        if not self.lost or run.start < self._lost_from:
            self._lost_from = run.start
        self.lost += run.end - run.start

    def expire(self, now: float, window: float) -> None:
        """Mark the oldest range lost after a retransmission timeout, and all sent long enough ago (RFC 8985 6.3)."""
        runs = self.runs
        if runs and runs[0].sacked:
            # The receiver reneged (RFC 2018 section 8): ignore all its reports.
            for run in runs:
                if run.sacked:
                    run.sacked = False
                    # The join (`_join`) discarded the boundaries of its segments.
                    run.base = run.start
                    run.size = run.end - run.start
            self.sacked = 0
        for index, run in enumerate(runs):
            if run.sacked or run.lost:
                continue
            # RFC 8985 6.3: the first range whatever its age, the others when they could have arrived by now.
            if index == 0 or run.time + self.rack_rtt + window <= now:
                self._mark_lost(run)
        self.retransmissions += 1

    def mark_lost(self, start: int, end: int) -> int:
        """Mark [start, end) lost where it is neither sacked nor lost; return the bytes."""
        news = 0
        index = bisect_right(self.runs, start, key=_end_of)
        while index < len(self.runs):
            run = self.runs[index]
            if run.start >= end:
                break
            if not (run.sacked or run.lost):
                if run.start < start:
                    self.split(index, start)
                    index += 1
                    continue
                if run.end > end:
                    self.split(index, end)
                self._mark_lost(run)
                news += run.end - run.start
            index += 1
        return news

    def mark_first_lost(self) -> int:
        """Mark the oldest segment lost unless it arrived; return the bytes."""
        if not self.runs:
            return 0
        run = self.runs[0]
        # To its end, wherever SND.UNA lies inside it: a peer that acknowledges byte by byte would otherwise have each
        # following byte retransmitted as a segment of its own.
        return self.mark_lost(run.start, run.boundary_from(run.start + 1))

    def mark_for_retransmission(self, start: int, end: int) -> None:
        """Mark [start, end) for retransmission for a reason other than a loss on the path."""
        self.mark_lost(start, end)
        self.retransmissions += 1

    def in_order(self) -> None:
        """Whether nothing is lost and nothing arrived out of order: RACK has nothing to find."""
        self.retransmissions = 0

    def clear_lost(self) -> None:
        """Clear all loss marks after a spurious timeout: the path was only late, or reordered segments."""
        self.reordering_seen = True
        for run in self.runs:
            run.lost = False
        self.lost = 0

    def next_lost(self, limit: int, now: float, edge: int) -> tuple[int, int] | None:
        """Return the first lost range, at most `limit` bytes of it, marked as sent now; None when there is none.

        `edge`: the end of the peer's window. Data beyond it waits; the very first segment is sent even into a closed
        window, as its probe.
        """
        index = self._first_lost()
        if index < 0:
            return None
        run = self.runs[index]
        max_size = limit
        # RFC 9293 3.8.6: a window that shrank limits retransmissions, too.
        if run.start < edge:
            max_size = min(limit, edge - run.start)
        elif index:
            return None
        start = run.start
        end = min(run.end, start + max_size)
        # A window that opens byte by byte would cut off a run with each byte; only the oldest byte must not wait.
        if index and max_size < limit and end < run.end and self._is_full:
            return None
        self.retransmissions += 1
        self.lost -= end - start
        self._lost_from = end
        if index and self._extend(index - 1, end, now, limit, True):
            run.start = end
            if run.start == run.end:
                del self.runs[index]
            return start, end
        if end < run.end:
            self.split(index, end)
        run.lost = False
        run.retransmitted = True
        run.time = now
        run.base = start
        run.size = limit
        return start, end

    def _first_lost(self) -> int:
        """Return the index of the first lost run, or -1."""
        if not self.lost:
            return -1
        runs = self.runs
        index = bisect_right(runs, self._lost_from, key=_end_of)
        while not runs[index].lost:
            index += 1
        # Recorded even when the run is not taken: skipped runs are not checked again.
        self._lost_from = runs[index].start
        return index

    def clear(self) -> None:
        """Clear the scoreboard."""
        self.runs.clear()
        self.sacked = self.lost = self.retransmissions = 0
