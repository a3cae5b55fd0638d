"""Who waits for connections: listeners, and SYNs held until somebody decides.

Lives here: accept queues and held SYNs as values with two verbs. Does not live here: demultiplexing
(stack/interface.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.wire.tcp import Segment


class ListeningSocket:
    """A TCP port with its queue of finished handshakes."""

    __slots__ = ("_release", "backlog", "closed", "on_event", "opening", "port", "queue")

    def __init__(self, port: int, backlog: int, release: Callable[[ListeningSocket], None]) -> None:
        self.port = port
        self.backlog = backlog
        self.queue: deque[TcpSocket] = deque()
        self.opening = 0
        "Handshakes under way; with `queue` at most `backlog`, more SYNs are dropped."
        self.closed = False
        self.on_event: Callable[[ListeningSocket], None] | None = None
        "Called when a connection can be accepted; the stack's own hook gets the event when this is None."
        self._release = release

    @property
    def has_room(self) -> bool:
        """Whether one more handshake may begin."""
        # A SYN too many is dropped and not refused: its sender tries again, by when there may be room. SYN cookies are
        # not needed, as nobody gets here but through a tunnel that has authenticated him.
        return self.opening + len(self.queue) < self.backlog

    def opens(self) -> None:
        """A handshake begins."""
        # Counted with those that are done: together they are what `backlog` bounds.
        self.opening += 1

    def opened(self, socket: TcpSocket | None) -> None:
        """A handshake is over; None: in vain."""
        self.opening -= 1
        if socket is not None:
            self.queue.append(socket)

    @property
    def readable(self) -> bool:
        """Whether `accept_nowait` would return a connection."""
        return bool(self.queue)

    def accept_nowait(self) -> TcpSocket | None:
        """The oldest finished handshake, or None."""
        while self.queue:
            socket = self.queue.popleft()
            # A connection that died in the queue is skipped: the kernel's accept would return it and leave the error
            # to the first read.
            socket.adopt()
            if not socket.closed:
                return socket
        return None

    def close(self) -> None:
        """Stop listening; connections nobody accepted are reset."""
        if self.closed:
            return
        self.closed = True
        while self.queue:
            # A reset, as a kernel does it: its sender believes to be connected, and would wait for an answer.
            self.queue.popleft().abort()
        self._release(self)


class PendingConnection:
    """A SYN for a port nobody listens on, waiting for a decision. Neither verb called: it expires."""

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
        # The SYN is kept, not a half-open connection: RFC 9293 has no state for "maybe", and its sender repeats the
        # SYN anyway.
        self._decide = decide

    @property
    def expired(self) -> bool:
        """Whether it is too late (or done): `accept` returns None."""
        return self.settled

    def accept(self) -> TcpSocket | None:
        """Answer the SYN; the connection becomes writable when the peer has answered in turn. None when expired."""
        if self.settled:
            return None
        self.settled = True
        return self._decide(self, True)

    def reset(self) -> None:
        """Refuse."""
        if not self.settled:
            self.settled = True
            self._decide(self, False)

    def expire(self) -> None:
        """Nobody decided in time."""
        self.settled = True
