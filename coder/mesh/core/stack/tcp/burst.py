"""How much may be under way at once without being lost in somebody's socket buffer.

The overlay's real bottleneck on a fast path is not a router: it is the UDP socket of the receiving process, which
nobody empties while that process is busy. Whatever is in flight may sit there at once.
"""

from __future__ import annotations

from coder.mesh.core.stack.settings import DEFAULT_BURST_LIMIT, FAST_PATH_RTT

_LARGEST = 1 << 20
"""Ours: beyond it only the queue in the socket buffer grows, and with it every other flow's delay (measured: equal
throughput from 0.4 to 4 MB)."""


class BurstLimit:
    """One number a host, asked by all of its connections."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = DEFAULT_BURST_LIMIT
        "Bytes that survive when nobody reads for a moment."

    def set(self, size: int, least: int) -> None:
        """The driver knows how large its socket's buffer is."""
        # `least`: two packets. A socket buffer that takes less than that would otherwise stop every connection for
        # good.
        self.size = min(max(size, least), _LARGEST)

    def within(self, shortest: float) -> int:
        """Bytes that may be in flight on a path with this minimal round trip.

        On a longer path the burst is spread over the round trip, so the same number becomes a rate.
        """
        # Without a sample the path may be the shortest there is, so the careful reading holds until one has come.
        if shortest <= FAST_PATH_RTT or shortest == _UNKNOWN:
            return self.size
        # Without this a path of 100 ms would be held to 10 MB/s, though the receiver empties its socket fifty times a
        # round trip.
        return int(self.size * shortest / FAST_PATH_RTT)


_UNKNOWN = float("inf")
