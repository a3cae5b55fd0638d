"""Listening sockets, and SYNs held until a fallback decides.

Lives here: accept queues and held SYNs as values with two verbs. Does not live here: demultiplexing
(stack/interface.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.wire.tcp import Segment
from coder.mesh.fair_shares import FairShares


class ListeningSocket:
    """A listening TCP port with its queue of finished handshakes."""

    __slots__ = ("_release", "_shares", "closed", "on_event", "port", "queue")

    def __init__(self, port: int, backlog: int, release: Callable[[ListeningSocket], None]) -> None:
        self.port = port
        self.queue: deque[TcpSocket] = deque()
        "Connections with a finished handshake, the oldest first."
        self._shares: FairShares[TcpSocket] = FairShares(backlog)
        "The queue and the handshakes in progress: together at most `backlog`."
        self.closed = False
        self.on_event: Callable[[ListeningSocket], None] | None = None
        "Called when a connection can be accepted; the stack's own hook gets the event when this is None."
        self._release = release

    @property
    def opening(self) -> int:
        """Number of handshakes in progress."""
        return len(self._shares) - len(self.queue)

    def make_room(self, peer: bytes) -> bool:
        """Return whether one more handshake of the peer may start; a peer with more than its share may lose one."""
        # A surplus SYN is dropped and not refused: its sender retries, and there may be room by then. SYN cookies would
        # lose the options of a handshake. The tunnel authenticates senders, so shares bound each of them instead.
        if not self._shares.is_full:
            return True
        victim = self._shares.evictable_for(peer)
        if victim is None:
            return False
        self._discard(victim)
        # Also when its handshake is finished: its peer would otherwise wait for an application that never accepts it.
        victim.abort()
        return True

    def handshake_started(self, socket: TcpSocket) -> None:
        """Count a handshake that starts."""
        self._shares.add(socket.remote, socket)

    def handshake_done(self, socket: TcpSocket) -> None:
        """Queue a connection whose handshake is finished."""
        self.queue.append(socket)

    def handshake_failed(self, socket: TcpSocket) -> None:
        """Forget a connection whose handshake failed."""
        self._shares.discard(socket.remote, socket)

    def _discard(self, socket: TcpSocket) -> None:
        self._shares.discard(socket.remote, socket)
        if socket in self.queue:
            self.queue.remove(socket)

    @property
    def readable(self) -> bool:
        """Whether `accept_nowait` would return a connection."""
        return bool(self.queue)

    def accept_nowait(self) -> TcpSocket | None:
        """Return the oldest finished handshake, or None."""
        while self.queue:
            socket = self.queue.popleft()
            self._shares.discard(socket.remote, socket)
            # A connection that died in the queue is skipped: the kernel's accept would return it and report the error
            # at the first read.
            socket.adopt()
            if not socket.closed:
                return socket
        return None

    def close(self) -> None:
        """Stop listening; connections that were not accepted are reset."""
        if self.closed:
            return
        self.closed = True
        while self.queue:
            # Reset as a kernel does it: the sender considers itself connected, and would wait for an answer.
            socket = self.queue.popleft()
            self._shares.discard(socket.remote, socket)
            socket.abort()
        self._release(self)


class PendingConnection:
    """A SYN for a port without a listener, waiting for a decision. Without a decision it expires."""

    __slots__ = ("_decide", "destination", "held_at", "port", "settled", "source", "source_port", "syn")

    def __init__(
        self,
        source: bytes,
        destination: bytes,
        syn: Segment,
        held_at: float,
        decide: Callable[[PendingConnection, bool], TcpSocket | None],
    ) -> None:
        self.source = source
        self.source_port = syn.source_port
        self.destination = destination
        self.port = syn.port
        self.syn = syn
        self.held_at = held_at
        self.settled = False
        "Whether it was accepted, reset, or has expired."
        # The SYN is kept, not a half-open connection: RFC 9293 has no state for an undecided one, and the sender
        # repeats the SYN anyway.
        self._decide = decide

    @property
    def expired(self) -> bool:
        """Whether it is decided or expired: `accept` returns None."""
        return self.settled

    def accept(self) -> TcpSocket | None:
        """Answer the SYN; the connection becomes writable when the peer has answered in turn. None when expired."""
        if self.settled:
            return None
        self.settled = True
        return self._decide(self, True)

    def reset(self) -> None:
        """Refuse the connection."""
        if not self.settled:
            self.settled = True
            self._decide(self, False)

    def expire(self) -> None:
        """Mark the decision as too late."""
        self.settled = True
