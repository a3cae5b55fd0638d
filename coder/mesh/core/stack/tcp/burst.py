"""Limit of the bytes in flight that do not overflow a socket buffer.

On a fast path the overlay's real bottleneck is not a router. It is the UDP socket of the receiving process, which is
not read while that process is busy. All data in flight may sit there at the same time.
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import DEFAULT_BURST_LIMIT, FAST_PATH_RTT

_LARGEST = 1 << 20
"""Ours: beyond it only the queue in the socket buffer grows, and with it every other flow's delay (measured: equal
throughput from 0.4 to 4 MB)."""


class BurstLimit:
    """The limit of a host, shared by all of its connections."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = DEFAULT_BURST_LIMIT
        "Bytes that survive when the reader pauses for a moment."

    def set(self, size: int, minimum: int) -> None:
        """Set the size of the driver's socket buffer."""
        # `minimum`: two packets. A smaller socket buffer would otherwise stop every connection for good.
        self.size = min(max(size, minimum), _LARGEST)

    def within(self, shortest: float) -> int:
        """Return the bytes that may be in flight on a path with this minimal round trip.

        On a longer path the burst is spread over the round trip, so the same number becomes a rate.
        """
        # Without a sample the path may be the shortest there is, so the strict limit holds until a sample exists.
        if shortest <= FAST_PATH_RTT or shortest == _UNKNOWN:
            return self.size
        # Without this a path of 100 ms would be held to 10 MB/s, though the receiver empties its socket fifty times a
        # round trip.
        return int(self.size * shortest / FAST_PATH_RTT)


_UNKNOWN = float("inf")
