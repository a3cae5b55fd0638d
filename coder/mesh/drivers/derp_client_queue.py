"""What waits in a client of the relay for its connection: control frames first, packets in order, bounded.

Lives here: the queue, and when it is long. Who pauses because of that is the endpoint's affair, by way of the events.
"""

from __future__ import annotations

from collections import deque

QUEUE_PACKETS = 1024
"""Ours: enough for a congestion window while a connection is being made; the oldest are dropped."""
QUEUE_BYTES = 4 << 20
LONG_QUEUE = 256 * 1024
"""Ours: bytes beyond which the stack is asked to wait. A longer queue only adds delay, losing packets costs more."""
SHORT_QUEUE = 64 * 1024
FLUSH_BYTES = 131_072
CONTROL_FRAMES = 256
"""Ours: pongs waiting for a relay; one that floods pings without reading loses answers, as at the other end."""


class DerpSendQueue:
    """Runs of ready frames, and how many packets each holds."""

    __slots__ = ("_bytes", "_control", "_packets", "_runs", "dropped", "is_long")

    def __init__(self) -> None:
        self._runs: deque[tuple[int, bytes]] = deque()
        self._packets = 0
        self._bytes = 0
        self._control: list[bytes] = []
        self.is_long = False
        """Whether somebody was asked to wait."""
        self.dropped = 0
        """Packets."""

    def push(self, packets: int, frames: bytes) -> bool:
        """Queue frames; False when the queue is long now."""
        self._runs.append((packets, frames))
        self._packets += packets
        self._bytes += len(frames)
        while (self._packets > QUEUE_PACKETS or self._bytes > QUEUE_BYTES) and len(self._runs) > 1:
            self.dropped += self._pop()[0]
        if self._bytes > LONG_QUEUE:
            self.is_long = True
        return not self.is_long

    def put_control(self, frame: bytes) -> None:
        """A frame that goes before packets; dropped for a relay that does not read."""
        if len(self._control) < CONTROL_FRAMES:
            self._control.append(frame)

    def put_first(self, frame: bytes) -> None:
        """A frame that goes before all others."""
        self._control.insert(0, frame)

    def forget_control(self) -> None:
        """What was meant for a connection that is gone."""
        self._control.clear()

    def take(self) -> bytes:
        """Frames for one flush; empty when nothing waits."""
        parts = self._control
        self._control = []
        size = 0
        while self._runs and size < FLUSH_BYTES:
            frames = self._pop()[1]
            size += len(frames)
            parts.append(frames)
        return b"".join(parts)

    def became_short(self) -> bool:
        """True once when a long queue has been worked off."""
        if self.is_long and self._bytes < SHORT_QUEUE:
            self.is_long = False
            return True
        return False

    def release(self) -> bool:
        """Nobody waits any longer: they may choose another path, and we drop what we must. -> whether anybody did."""
        was, self.is_long = self.is_long, False
        return was

    def _pop(self) -> tuple[int, bytes]:
        packets, frames = self._runs.popleft()
        self._packets -= packets
        self._bytes -= len(frames)
        return packets, frames
