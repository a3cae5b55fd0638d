"""Heap of the deadlines of all connections.

Most deadlines never expire: an acknowledgement moves them. The heap therefore never searches for an entry when its
connection moves a deadline. The entry stays, and the stack checks it when it surfaces. A connection enters the heap
again only for a deadline earlier than the ones it has there.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.stack.tcp.timers import NEVER


class DeadlineHeap:
    """Connections ordered by deadline."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, TcpSocket]] = []
        self._count = 0
        "Tie breaker: keeps the heap from comparing connections."

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, socket: TcpSocket) -> None:
        """Schedule the connection for its earliest deadline, unless an entry that early exists."""
        timers = socket.timers
        at = timers.earliest
        scheduled = timers.scheduled
        # A connection only ever adds earlier entries, so its own list is a stack: the last is the next to surface, and
        # popping from the heap pops it.
        if at < (scheduled[-1] if scheduled else NEVER):
            scheduled.append(at)
            self._count += 1
            heappush(self._heap, (at, self._count, socket))

    def next(self) -> float:
        """Return when `pop_due` may have a result; maybe too early, never too late."""
        return self._heap[0][0] if self._heap else NEVER

    def pop_due(self, now: float) -> TcpSocket | None:
        """Return a connection whose deadline has passed, or None."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            socket = heappop(heap)[2]
            socket.timers.scheduled.pop()
            # The entry's deadline may have moved since. The check happens only now, once for many moves.
            if socket.timers.refresh() <= now:
                return socket
            self.schedule(socket)
        return None

    def purge(self, living: int) -> None:
        """Drop entries of closed connections; `living` connections are left.

        A keepalive three days away must not keep dead ones in memory.
        """
        # Rebuilt when most of it is dead, as with peers (paths/timer_queue.py). That keeps the cost per closed
        # connection constant.
        if len(self._heap) > 64 + 4 * living:
            self._heap = [entry for entry in self._heap if entry[2].state is not TcpState.CLOSED]
            heapify(self._heap)
