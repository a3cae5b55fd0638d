"""One heap for the deadlines of all connections.

Most deadlines never come: an acknowledgement moves them. So an entry is not searched for when its connection changes
its mind; it stays, and is looked at when it surfaces. A connection enters the heap again only for something earlier
than what it has there.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.stack.tcp.timers import NEVER


class DeadlineHeap:
    """When which connection has to be looked at."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, TcpSocket]] = []
        self._count = 0
        "Keeps the heap from comparing connections."

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, socket: TcpSocket) -> None:
        """See that the connection is looked at no later than it wants to be."""
        timers = socket.timers
        at = timers.earliest
        scheduled = timers.scheduled
        # A connection only ever adds earlier entries, so its own are a stack: the last is the next to surface, and
        # popping one pops the other.
        if at < (scheduled[-1] if scheduled else NEVER):
            scheduled.append(at)
            self._count += 1
            heappush(self._heap, (at, self._count, socket))

    def next(self) -> float:
        """When `pop_due` may have something; maybe too early, never too late."""
        return self._heap[0][0] if self._heap else NEVER

    def pop_due(self, now: float) -> TcpSocket | None:
        """A connection with a deadline that has come; None when there is none left."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            socket = heappop(heap)[2]
            socket.timers.scheduled.pop()
            # The entry may be of a deadline that moved away since; what is due is asked only now, once for many moves.
            if socket.timers.refresh() <= now:
                return socket
            self.schedule(socket)
        return None

    def purge(self, living: int) -> None:
        """A connection was closed, `living` are left: a keepalive three days away must not keep dead ones in memory."""
        # As with peers (paths/timer_queue.py): sorted anew when most of it is dead, which keeps the cost per closed
        # connection constant.
        if len(self._heap) > 64 + 4 * living:
            self._heap = [entry for entry in self._heap if entry[2].state is not TcpState.CLOSED]
            heapify(self._heap)
