"""Listening sockets, and SYNs held until a fallback decides.

Lives here: accept queues and held SYNs as values with two verbs. Does not live here: demultiplexing
(stack/interface.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.wire.tcp import Segment


class ListeningSocket:
    """A listening TCP port with its queue of finished handshakes."""

    __slots__ = ("_release", "backlog", "closed", "on_event", "opening", "port", "queue")

    def __init__(self, port: int, backlog: int, release: Callable[[ListeningSocket], None]) -> None:
        self.port = port
        self.backlog = backlog
        self.queue: deque[TcpSocket] = deque()
        self.opening = 0
        "Handshakes in progress; with `queue` at most `backlog`, further SYNs are dropped."
        self.closed = False
        self.on_event: Callable[[ListeningSocket], None] | None = None
        "Called when a connection can be accepted; the stack's own hook gets the event when this is None."
        self._release = release

    @property
    def has_room(self) -> bool:
        """Whether one more handshake may start."""
        # A surplus SYN is dropped and not refused: its sender retries, and there may be room by then. SYN cookies are
        # not needed, as only an authenticated tunnel delivers SYNs.
        return self.opening + len(self.queue) < self.backlog

    def handshake_started(self) -> None:
        """Count a handshake that starts."""
        # Handshakes in progress and finished ones together are bounded by `backlog`.
        self.opening += 1

    def handshake_ended(self, socket: TcpSocket | None) -> None:
        """Record the end of a handshake; None: it failed."""
        self.opening -= 1
        if socket is not None:
            self.queue.append(socket)

    @property
    def readable(self) -> bool:
        """Whether `accept_nowait` would return a connection."""
        return bool(self.queue)

    def accept_nowait(self) -> TcpSocket | None:
        """Return the oldest finished handshake, or None."""
        while self.queue:
            socket = self.queue.popleft()
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
            self.queue.popleft().abort()
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
