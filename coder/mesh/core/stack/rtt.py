"""Round-trip time: smoothed, minimum, and the retransmission timeout made of it.

Obeys: RFC 6298.
"""

from __future__ import annotations

_MIN_WINDOW = 300.0
"""Ours: seconds after which an old minimum gives way to a new one (as Linux). Shorter would let a queue of our own
making pass for distance; changes of path we know of forget the minimum at once."""


class RoundTrip:
    """Samples in, `rto` out; seconds."""

    __slots__ = ("_max_rto", "_min_at", "_min_rto", "_variance", "latest", "minimum", "rto", "smoothed")

    def __init__(self, first_rto: float, min_rto: float, max_rto: float) -> None:
        self.rto = first_rto
        "Without backoff."
        self.smoothed = 0.0
        "0 until the first sample."
        self._variance = 0.0
        self.minimum = float("inf")
        self._min_at = 0.0
        self.latest = 0.0
        self._min_rto = min_rto
        self._max_rto = max_rto

    def sample(self, rtt: float, now: float) -> None:
        """Take a measurement of a segment that was sent once."""
        self.latest = rtt
        if self.smoothed == 0.0:
            self.smoothed = rtt
            self._variance = rtt / 2
        else:
            self._variance += (abs(self.smoothed - rtt) - self._variance) / 4
            self.smoothed += (rtt - self.smoothed) / 8
        if rtt <= self.minimum or now - self._min_at > _MIN_WINDOW:
            self.minimum = rtt
            self._min_at = now
        # Linux's reading: the variance term has the floor, so that a steady long path keeps a margin.
        rto = self.smoothed + max(self._min_rto, 4 * self._variance)
        self.rto = min(rto, self._max_rto)

    def forget_minimum(self) -> None:
        """The path changed."""
        self.minimum = float("inf")
