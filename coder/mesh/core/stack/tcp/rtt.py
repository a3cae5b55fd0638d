"""Round-trip time: smoothed, minimum, the retransmission timeout made of it, and how long silence is borne.

Obeys: RFC 6298; RFC 9293 section 3.8.3 (when to give up).
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import TcpSettings

_MIN_WINDOW = 300.0
"""Ours: seconds after which an old minimum gives way to a new one (as Linux). Shorter would let a queue of our own
making pass for distance; changes of path we know of forget the minimum at once."""
_RTO_AFTER_LOST_SYN = 3.0
"""RFC 6298 section 5, rule 5.7: seconds."""
_MAX_BACKOFF = 10
"""Doublings; 2**10 times the smallest timeout is beyond every `max_rto`."""


class RoundTrip:
    """Samples in, timeouts out; seconds."""

    __slots__ = (
        "_give_up",
        "_is_orphan",
        "_max_rto",
        "_min_at",
        "_min_rto",
        "_orphan_give_up",
        "_silence",
        "_stalled",
        "_variance",
        "_waits_since",
        "minimum",
        "retries",
        "rto",
        "smoothed",
    )

    def __init__(self, settings: TcpSettings) -> None:
        # RFC 6298 rule 2.1.
        self.rto = settings.first_rto
        "Without backoff."
        self.smoothed = 0.0
        "0 until the first sample."
        self._variance = 0.0
        self.minimum = float("inf")
        self._min_at = 0.0
        self._min_rto = settings.min_rto
        # RFC 6298 rule 2.5.
        self._max_rto = settings.max_rto
        # RFC 9293 section 3.8.3 calls it R2, and has it at 100 seconds at least.
        self._give_up = settings.give_up
        self._orphan_give_up = settings.orphan_give_up
        self._is_orphan = False
        "Whether the application has closed the connection."
        self.retries = 0
        "Timeouts in a row."
        self._silence = 0.0
        "Seconds waited in vain, in all waits since the last progress."
        self._stalled = 0.0
        "The same, counting waits that the peer answered with a closed window."
        self._waits_since = 0.0
        "When the wait under way began."

    def sample(self, rtt: float, now: float) -> None:
        """Take a measurement of a segment that was sent once (section 3, Karn's algorithm)."""
        if self.smoothed == 0.0:
            self.smoothed = rtt  # section 2.2
            # RFC 6298 rule 2.2: with four variances the first timeout is three round trips.
            self._variance = rtt / 2
        else:
            # Section 2.3, alpha = 1/8 and beta = 1/4; the variance first, as it uses the old mean.
            self._variance += (abs(self.smoothed - rtt) - self._variance) / 4
            self.smoothed += (rtt - self.smoothed) / 8
        # `<=` moves the moment as well: a path that keeps its length never outlives its minimum.
        if rtt <= self.minimum or now - self._min_at > _MIN_WINDOW:
            self.minimum = rtt
            self._min_at = now
        # Linux's reading of section 2.4: the variance term has the floor, so that a steady long path keeps a margin.
        # With the floor under the sum, a path of 300 ms that never varies would time out on the first late segment.
        spread = 4 * self._variance
        rto = self.smoothed + (spread if spread > self._min_rto else self._min_rto)
        self.rto = rto if rto < self._max_rto else self._max_rto
        # Section 5, after rule 5.7: only a new measurement ends the backoff. Progress alone does not (Karn): it may be
        # the copy's, and the next segment would time out as early as the last.
        self.retries = 0

    def forget_minimum(self) -> None:
        """The path changed."""
        self.minimum = float("inf")

    # Silence

    def orphan(self) -> None:
        """The application has closed the connection: silence is borne for a shorter time."""
        self._is_orphan = True

    def timeout(self) -> float:
        """The retransmission timeout after `retries` doublings (section 5.5)."""
        if not self.retries:
            return self.rto
        # Rule 2.5 allows a ceiling of sixty seconds or more. Doubled from the plain timeout each time, not from the
        # last wait: a sample in between needs nothing undone.
        return min(self.rto * (1 << min(self.retries, _MAX_BACKOFF)), self._max_rto)

    def persist_delay(self, probes: int) -> float:
        """How long to wait between window probes: as the timeout (RFC 9293 3.8.6.1: increase exponentially)."""
        return min(self.rto * (1 << min(probes, _MAX_BACKOFF)), self._max_rto)

    def back_off(self) -> None:
        """A timeout ran out."""
        self.retries += 1

    def progressed(self) -> None:
        """Something new was acknowledged: silence begins anew. Backoff stays until `sample`."""
        self._silence = self._stalled = 0.0

    def syn_was_lost(self) -> None:
        """The handshake took a timeout, data begins (rule 5.7)."""
        # The first second was too short for this path, or the path loses much: either way the RFC's MUST.
        self.rto = min(max(self.rto, _RTO_AFTER_LOST_SYN), self._max_rto)
        self.retries = 0

    def path_changed(self) -> None:
        """Timeouts told about a path that is gone."""
        self.retries = 0

    def is_in_vain(self, delay: float, now: float, heard: float) -> bool:
        """A wait of `delay` seconds is over: whether it is time to give up.

        The waits are added up, not the clock: a laptop that slept for hours and needs half a minute to find its
        network has not been silent for hours. `heard`: when a peer whose window is closed was heard last, else -1. One
        that goes on answering is waited for however long, as RFC 9293 3.8.6.1 demands; but not once the application has
        closed, or a hostile peer could keep what is queued for ever (kernels end such connections, too).
        """
        # Heard since the wait began is what counts: an answer to an earlier probe says nothing about this one.
        self._silence = 0.0 if heard >= self._waits_since else self._silence + delay
        self._stalled += delay
        self._waits_since = now
        if self._is_orphan:
            return self._silence >= self._orphan_give_up or self._stalled >= self._give_up
        return self._silence >= self._give_up
