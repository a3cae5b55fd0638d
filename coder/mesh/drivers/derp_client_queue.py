"""Send queue of a relay connection: control frames first, packets in order, bounded.

Lives here: the queue, and when it is long. The endpoint pauses peers because of that, by way of the events.
"""

from __future__ import annotations

from collections import deque

QUEUE_PACKETS = 1024
"""Ours: enough for a congestion window while a connection opens; the oldest packets are dropped."""
QUEUE_BYTES = 4 << 20
LONG_QUEUE = 256 * 1024
"""Ours: bytes beyond which the stack should wait. A longer queue only adds delay, losing packets costs more."""
SHORT_QUEUE = 64 * 1024
FLUSH_BYTES = 131_072
CONTROL_FRAMES = 256
"""Ours: pongs that wait for a relay; one that floods pings without reading loses answers, as on the relay's side."""


class DerpSendQueue:
    """Runs of ready frames, and how many packets each holds."""

    __slots__ = ("_bytes", "_control", "_packets", "_runs", "dropped", "is_long")

    def __init__(self) -> None:
        self._runs: deque[tuple[int, bytes]] = deque()
        self._packets = 0
        self._bytes = 0
        self._control: list[bytes] = []
        self.is_long = False
        """Whether a sender was asked to wait."""
        self.dropped = 0
        """Packets."""

    def push(self, packets: int, frames: bytes) -> bool:
        """Queue frames; return False when the queue is long now."""
        self._runs.append((packets, frames))
        self._packets += packets
        self._bytes += len(frames)
        while (self._packets > QUEUE_PACKETS or self._bytes > QUEUE_BYTES) and len(self._runs) > 1:
            self.dropped += self._pop()[0]
        if self._bytes > LONG_QUEUE:
            self.is_long = True
        return not self.is_long

    def put_control(self, frame: bytes) -> None:
        """Queue a frame before packets; dropped for a relay that does not read."""
        if len(self._control) < CONTROL_FRAMES:
            self._control.append(frame)

    def put_first(self, frame: bytes) -> None:
        """Queue a frame before all others."""
        self._control.insert(0, frame)

    def forget_control(self) -> None:
        """Drop control frames of a closed connection."""
        self._control.clear()

    def take(self) -> bytes:
        """Return the frames for one flush; empty when nothing is queued."""
        parts = self._control
        self._control = []
        size = 0
        while self._runs and size < FLUSH_BYTES:
            frames = self._pop()[1]
            size += len(frames)
            parts.append(frames)
        return b"".join(parts)

    def became_short(self) -> bool:
        """Return True once when a long queue has become short."""
        if self.is_long and self._bytes < SHORT_QUEUE:
            self.is_long = False
            return True
        return False

    def release(self) -> bool:
        """End the wait of senders: they may choose another path, and we drop what exceeds the bound.

        Return whether any waited.
        """
        was, self.is_long = self.is_long, False
        return was

    def _pop(self) -> tuple[int, bytes]:
        packets, frames = self._runs.popleft()
        self._packets -= packets
        self._bytes -= len(frames)
        return packets, frames
