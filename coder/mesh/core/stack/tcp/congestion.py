"""CUBIC congestion control: the congestion window.

Lives here: the window and its thresholds. Does not live here: when a segment counts as lost (scoreboard.py,
recovery.py).
Obeys: RFC 9438 (with fast convergence), RFC 5681 (slow start), RFC 9406 (HyStart++), RFC 6928 (initial window).
Units: bytes for windows, seconds; CUBIC's own variables are in segments, as in the RFC.
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import INITIAL_WINDOW_SEGMENTS

# RFC 9438: C in section 5.1, beta in 4.6, alpha of the Reno-friendly region in 4.3.
_C = 0.4
_BETA = 0.7
_ALPHA = 3 * (1 - _BETA) / (1 + _BETA)
# RFC 7323 section 2.3: no peer can advertise more, so nothing is gained beyond.
_MAX_WINDOW = 1 << 30
# RFC 9406 section 4.3, with its values: how much the round trip must grow before slow start is left, after how many
# samples, and how the conservative phase continues to grow.
_THRESH_DIVISOR = 8
_MIN_THRESH = 0.004
_MAX_THRESH = 0.016
_SAMPLES = 8
_CSS_DIVISOR = 4
_CSS_ROUNDS = 5

Snapshot = tuple[int, int, float, float, float, float]
"""The state of the window before a reduction: see `Cubic.snapshot`."""


class Cubic:
    """Congestion window of a connection."""

    __slots__ = (
        "_css_baseline",
        "_css_rounds",
        "_epoch",
        "_k",
        "_last_round_rtt",
        "_max",
        "_prior",
        "_reno",
        "_round_end",
        "_round_rtt",
        "_round_samples",
        "mss",
        "ssthresh",
        "window",
    )

    def __init__(self, mss: int) -> None:
        self.mss = mss
        # RFC 6928 section 2 bounds it by 14,600 bytes as well, unless two segments are more. Not applied to the wide
        # packets of a relay or a loopback interface, like Linux: on a relay, the relay's own TCP handles the network's
        # share of congestion.
        self.window = INITIAL_WINDOW_SEGMENTS * mss
        "Bytes that may be in flight."
        # RFC 5681 section 3.1: as high as possible, so that the path itself ends the first slow start.
        self.ssthresh = _MAX_WINDOW
        self._max = 0.0
        "W_max, segments; 0: the curve begins where congestion avoidance does."
        self._prior = 0.0
        "cwnd_prior, segments: the window before the last reduction."
        self._epoch = -1.0
        self._k = 0.0
        self._reno = 0.0
        # A round ends when the SND.NXT of its beginning is acknowledged (RFC 9406 section 4.2).
        self._round_end = 0
        self._round_rtt = self._last_round_rtt = float("inf")
        self._round_samples = 0
        self._css_rounds = 0
        "Rounds spent in conservative slow start; 0 outside."
        self._css_baseline = float("inf")

    def acked(self, size: int, now: float, rtt: float) -> None:
        """Grow the window: `size` bytes were delivered while the window was the limit. `rtt`: smoothed."""
        if self.window < self.ssthresh:
            # RFC 3465 would bound the step by two segments; bursts are bounded by a batch and by the burst limit
            # anyway.
            self.window += size // (_CSS_DIVISOR if self._css_rounds else 1)
            self.window = min(self.window, _MAX_WINDOW)
            return
        mss = self.mss
        segments = self.window / mss
        # The clock of the curve starts with the first growth after a loss, not with the loss: recovery takes a round
        # trip.
        if self._epoch < 0:
            self._begin_epoch(now, segments)
        elapsed = now - self._epoch
        # RFC 9438 4.2: the cubic, a round trip ahead, never below the window and never more than half above it. Growth
        # is spread over the window's acknowledgements below, so the target is the curve's value a round trip later.
        target = _C * (elapsed + rtt - self._k) ** 3 + self._max
        target = min(max(target, segments), 1.5 * segments)
        # 4.3: on short paths Reno would have grown further than the cubic. Follow it there, or its flows would starve
        # us. Its step is one segment a round trip only from the window before the reduction on; fast convergence keeps
        # that window apart from the maximum.
        self._reno += (_ALPHA if self._reno < self._prior else 1.0) * (size / mss) / segments
        if self._reno > _C * (elapsed - self._k) ** 3 + self._max:
            grown = max(segments, self._reno)
        else:
            # RFC 9438 sections 4.4 and 4.5: (target - cwnd) / cwnd for each segment acknowledged.
            grown = segments + (target - segments) / segments * (size / mss)
        self.window = min(int(grown * mss), _MAX_WINDOW)

    def _begin_epoch(self, now: float, segments: float) -> None:
        self._epoch = now
        if segments < self._max:
            # RFC 9438 section 4.2, figure 2: seconds until the curve is back at the old maximum.
            self._k = ((self._max - segments) / _C) ** (1 / 3)
        else:
            self._k = 0.0
            self._max = segments
        self._reno = segments

    def round_trip(self, rtt: float, acked: int, sent: int) -> None:
        """Record a sample in slow start; exit slow start when the queue grows (RFC 9406).

        `acked`, `sent`: SND.UNA, SND.NXT.
        """
        # RFC 9406 section 4.3: in the first slow start only. Later ones have a threshold, and a delay that other
        # traffic causes would end them at a window that was never too large.
        if self.ssthresh < _MAX_WINDOW or self.window >= self.ssthresh:
            return
        if acked >= self._round_end:
            self._next_round(sent)
        self._round_rtt = min(self._round_rtt, rtt)
        self._round_samples += 1
        # RFC 9406 section 4.2: a minimum of fewer than eight samples may be noise of the scheduler.
        if self._round_samples < _SAMPLES:
            return
        if self._css_rounds:
            # RFC 9406 4.2: the delay was temporary; return to full slow start.
            if self._round_rtt < self._css_baseline:
                self._css_rounds = 0
        # Both rounds need a minimum; the first round has no predecessor.
        elif self._last_round_rtt < 1e9:
            margin = min(max(self._last_round_rtt / _THRESH_DIVISOR, _MIN_THRESH), _MAX_THRESH)
            if self._round_rtt >= self._last_round_rtt + margin:
                self._css_baseline = self._round_rtt
                self._css_rounds = 1

    def _next_round(self, sent: int) -> None:
        self._round_end = sent
        self._last_round_rtt = self._round_rtt
        self._round_rtt = float("inf")
        self._round_samples = 0
        if self._css_rounds:
            # The round in which the delay appeared counts as the first of five, though it is a part only (RFC 9406
            # section 4.2).
            self._css_rounds += 1
            if self._css_rounds > _CSS_ROUNDS:
                self.ssthresh = self.window
                self._css_rounds = 0

    def lost(self, in_flight: int) -> None:
        """Apply the multiplicative decrease for a loss. `in_flight`: bytes outstanding when the loss was found."""
        # RFC 9438 4.6 reduces the flight, not a window that was not filled. Not below two segments: RFC 5681
        # section 3.1, equation 4, and a flight of one segment would otherwise shrink to nothing.
        segments = min(self.window, max(in_flight, 2 * self.mss)) / self.mss
        self._prior = segments
        # Fast convergence: a window below the last maximum yields to other flows.
        self._max = segments * (1 + _BETA) / 2 if segments < self._max else segments
        self._epoch = -1.0
        self._css_rounds = 0
        # RFC 9438 section 4.6, in whole segments; not below two (RFC 5681 section 3.1).
        self.ssthresh = max(int(segments * _BETA) * self.mss, 2 * self.mss)
        self.window = self.ssthresh

    def timed_out(self, in_flight: int) -> None:
        """Restart with one segment after a retransmission timeout."""
        self.lost(in_flight)
        # RFC 5681 section 3.1: the loss window is one segment, whatever the initial window was.
        self.window = self.mss
        # RFC 9438 section 4.8: the curve restarts where slow start ends (K = 0), not below the old maximum: a path that
        # fell silent may be another one now.
        self._max = 0.0

    def shrink_to(self, segments: int) -> None:
        """Limit the window to so many segments until an acknowledgement arrives."""
        self.window = min(self.window, segments * self.mss)

    def idle(self, periods: int) -> None:
        """Shrink the stale window after `periods` retransmission timeouts without sending."""
        floor = INITIAL_WINDOW_SEGMENTS * self.mss
        if self.window > floor:
            self.ssthresh = max(self.ssthresh, 3 * self.window // 4) if self.ssthresh < _MAX_WINDOW else self.ssthresh
            # Not in one step, as in RFC 5681 section 4.1, but halved for each timeout and with three quarters of it
            # kept as the threshold (RFC 2861, as in Linux): a pause of a second should not cost a transfer its rate.
            self.window = max(self.window >> min(periods, 30), floor)
        self._epoch = -1.0

    def snapshot(self) -> Snapshot:
        """Return the state that `restore` needs when a loss proves spurious."""
        return self.window, self.ssthresh, self._max, self._prior, self._k, self._epoch

    def restore(self, kept: Snapshot) -> None:
        """Undo a decrease."""
        window, self.ssthresh, self._max, self._prior, self._k, self._epoch = kept
        # RFC 9438 4.9: return to the window before the reduction, unless it has already grown beyond.
        self.window = max(self.window, window)

    def resize(self, mss: int) -> None:
        """Change the segment size."""
        self.mss = mss
        # The window stays the same in bytes: a path that carried it in small segments carries it in large ones.
        self.window = max(self.window, 2 * mss)
