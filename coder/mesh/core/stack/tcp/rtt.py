"""Round-trip time: smoothed, minimum, the retransmission timeout derived from it, and when to give up.

Obeys: RFC 6298; RFC 9293 section 3.8.3 (when to give up).
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import TcpSettings

_MIN_WINDOW = 300.0
"""Ours: seconds after which an old minimum is replaced by a new one (as Linux). A shorter time would count our own
queue as distance; a known change of path forgets the minimum immediately."""
_RTO_AFTER_LOST_SYN = 3.0
"""RFC 6298 section 5, rule 5.7: seconds."""
_MAX_BACKOFF = 10
"""Doublings; 2**10 times the smallest timeout is beyond every `max_rto`."""


class RoundTrip:
    """Round-trip samples in, timeouts out; seconds."""

    __slots__ = (
        "_give_up",
        "_is_orphan",
        "_max_rto",
        "_min_at",
        "_min_rto",
        "_orphan_give_up",
        "_rttvar",
        "_silence",
        "_stalled",
        "_waits_since",
        "minimum",
        "retries",
        "rto",
        "srtt",
    )

    def __init__(self, settings: TcpSettings) -> None:
        # RFC 6298 rule 2.1.
        self.rto = settings.first_rto
        "The timeout without backoff."
        self.srtt = 0.0
        "0 until the first sample."
        self._rttvar = 0.0
        self.minimum = float("inf")
        self._min_at = 0.0
        self._min_rto = settings.min_rto
        # RFC 6298 rule 2.5.
        self._max_rto = settings.max_rto
        # RFC 9293 section 3.8.3 calls it R2, and requires 100 seconds at least.
        self._give_up = settings.give_up
        self._orphan_give_up = settings.orphan_give_up
        self._is_orphan = False
        "Whether the application has closed the connection."
        self.retries = 0
        "Timeouts in a row."
        self._silence = 0.0
        "Seconds of unanswered waits since the last progress."
        self._stalled = 0.0
        "The same, including waits that the peer answered with a closed window."
        self._waits_since = 0.0
        "Start of the current wait."

    def add_sample(self, rtt: float, now: float) -> None:
        """Add a measurement of a segment that was sent once (section 3, Karn's algorithm)."""
        if self.srtt == 0.0:
            self.srtt = rtt  # section 2.2
            # RFC 6298 rule 2.2: with four variances the first timeout is three round trips.
            self._rttvar = rtt / 2
        else:
            # Section 2.3, alpha = 1/8 and beta = 1/4; the variance first, as it uses the old mean.
            self._rttvar += (abs(self.srtt - rtt) - self._rttvar) / 4
            self.srtt += (rtt - self.srtt) / 8
        # `<=` updates the moment as well: the minimum of a path of constant length never expires.
        if rtt <= self.minimum or now - self._min_at > _MIN_WINDOW:
            self.minimum = rtt
            self._min_at = now
        # Linux's reading of section 2.4: the variance term has the minimum, so that a steady long path keeps a margin.
        # With the minimum under the sum, a path of 300 ms that never varies would time out on the first late segment.
        spread = 4 * self._rttvar
        rto = self.srtt + (spread if spread > self._min_rto else self._min_rto)
        self.rto = rto if rto < self._max_rto else self._max_rto
        # Section 5, after rule 5.7: only a new measurement ends the backoff. Progress alone does not (Karn): it may
        # come from the copy, and the next segment would time out as early as the last.
        self.retries = 0

    def forget_minimum(self) -> None:
        """Forget the minimum after a change of path."""
        self.minimum = float("inf")

    # Giving up

    def orphan(self) -> None:
        """Give up earlier: the application has closed the connection."""
        self._is_orphan = True

    def timeout(self) -> float:
        """Return the retransmission timeout after `retries` doublings (section 5.5)."""
        if not self.retries:
            return self.rto
        # Rule 2.5 allows a maximum of sixty seconds or more. Doubled from the plain timeout each time, not from the
        # last wait: a sample in between needs nothing undone.
        return min(self.rto * (1 << min(self.retries, _MAX_BACKOFF)), self._max_rto)

    def persist_delay(self, probes: int) -> float:
        """Return the time between window probes: as the timeout (RFC 9293 3.8.6.1: increase exponentially)."""
        return min(self.rto * (1 << min(probes, _MAX_BACKOFF)), self._max_rto)

    def back_off(self) -> None:
        """Back off after a timeout."""
        self.retries += 1

    def on_progress(self) -> None:
        """Reset the silence: new data was acknowledged. Backoff stays until `sample`."""
        self._silence = self._stalled = 0.0

    def syn_was_lost(self) -> None:
        """Start data transfer after a handshake with a timeout (rule 5.7)."""
        # The first second was too short for this path, or the path loses much: the RFC says MUST in both cases.
        self.rto = min(max(self.rto, _RTO_AFTER_LOST_SYN), self._max_rto)
        self.retries = 0

    def path_changed(self) -> None:
        """Forget the timeouts of the previous path."""
        self.retries = 0

    def should_give_up(self, delay: float, now: float, heard: float) -> bool:
        """Record the end of a wait of `delay` seconds; return whether to give up.

        The sum of the waits counts, not the clock: a laptop that slept for hours and needs half a minute to find its
        network has not been silent for hours. `heard`: when a peer whose window is closed was heard last, else -1. A
        peer that continues to answer is waited for indefinitely, as RFC 9293 3.8.6.1 requires. That ends once the
        application has closed, or a hostile peer could keep the queued data for ever (kernels end such connections,
        too).
        """
        # Only answers since the wait began count: an answer to an earlier probe says nothing about this one.
        self._silence = 0.0 if heard >= self._waits_since else self._silence + delay
        self._stalled += delay
        self._waits_since = now
        if self._is_orphan:
            return self._silence >= self._orphan_give_up or self._stalled >= self._give_up
        return self._silence >= self._give_up
