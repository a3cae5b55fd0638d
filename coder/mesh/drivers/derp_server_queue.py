"""Queue of a receiver on the relay: senders take turns, and no sender fills the memory.

Lives here: the queue and its bounds. derp_server.py chooses receivers, and pauses senders.
Obeys docs/protocol/derp.md, "What a relay does".
"""

from __future__ import annotations

from collections import deque

QUEUE_PACKETS = 512
QUEUE_BYTES = 2 << 20
"""Ours: a reader that has stopped may pin this much per queue, whatever its packets' sizes."""
BUSY_PACKETS = 224
"""Ours: a queue longer than this pauses reading from its sender, so that TCP slows the sender down before packets have
to be dropped."""
BUSY_BYTES = QUEUE_BYTES * BUSY_PACKETS // QUEUE_PACKETS
"""Ours: the same in bytes; a relayed stream's packets are 32 KB, of which 64 fill the queue."""
TURN_BYTES = 16 * 1024
"""Ours: bytes a sender may send to a receiver per turn, while several wait."""


class Share:
    """A sender's part of a receiver's queue: runs of ready frames, and its turn."""

    __slots__ = ("bytes", "credit", "packets", "runs")

    def __init__(self) -> None:
        self.runs: deque[tuple[int, bytes]] = deque()
        self.packets = 0
        self.bytes = 0
        self.credit = 0

    def pop(self) -> tuple[int, bytes]:
        """Remove the oldest run; return its packets and frames."""
        packets, frames = self.runs.popleft()
        self.packets -= packets
        self.bytes -= len(frames)
        return packets, frames


class FairQueue:
    """Queue of a receiver, with a share per sender: senders take turns, and the largest share loses its oldest first.

    Deficit round robin (Shreedhar and Varghese, 1995): a turn is worth so many bytes, whatever the size of packets.
    """

    __slots__ = ("bytes", "packets", "shares", "turns")

    def __init__(self) -> None:
        self.shares: dict[bytes, Share] = {}
        self.turns: list[bytes] = []
        "Senders in turn. A client has two queues, mostly empty: a deque of nothing has 760 bytes."
        self.packets = 0
        self.bytes = 0

    def push(self, sender: bytes, packets: int, frames: bytes) -> int:
        """Append a run; return the packets dropped to make room."""
        share = self.shares.get(sender)
        if share is None:
            share = self.shares[sender] = Share()
            self.turns.append(sender)
        share.runs.append((packets, frames))
        share.packets += packets
        share.bytes += len(frames)
        self.packets += packets
        self.bytes += len(frames)
        dropped = 0
        while self.packets > QUEUE_PACKETS or self.bytes > QUEUE_BYTES:
            # By what there is too much of: five hundred empty frames are few bytes, and would push out all others.
            by_packets = self.packets > QUEUE_PACKETS
            victim = max(self.shares, key=self._packets_of if by_packets else self._bytes_of)
            if len(self.shares) == 1 and len(self.shares[victim].runs) == 1:
                break
            dropped += self._pop_from(victim)[0]
        return dropped

    def _packets_of(self, sender: bytes) -> int:
        return self.shares[sender].packets

    def _bytes_of(self, sender: bytes) -> int:
        return self.shares[sender].bytes

    def is_crowded_by(self, sender: bytes) -> bool:
        """Return whether the queue is long, and this sender exceeds its fair part of it."""
        share = self.shares.get(sender)
        if share is None:
            return False
        senders = len(self.shares)
        by_packets = self.packets > BUSY_PACKETS and share.packets * senders > BUSY_PACKETS
        return by_packets or (self.bytes > BUSY_BYTES and share.bytes * senders > BUSY_BYTES)

    def pop(self) -> tuple[int, bytes]:
        """Remove and return the next run; the queue must not be empty."""
        while True:
            sender = self.turns[0]
            share = self.shares[sender]
            if share.credit > 0:
                share.credit -= len(share.runs[0][1])
                return self._pop_from(sender)
            share.credit += TURN_BYTES
            self.turns.append(self.turns.pop(0))

    def _pop_from(self, sender: bytes) -> tuple[int, bytes]:
        share = self.shares[sender]
        packets, frames = share.pop()
        self.packets -= packets
        self.bytes -= len(frames)
        if not share.runs:
            del self.shares[sender]
            self.turns.remove(sender)
        return packets, frames
