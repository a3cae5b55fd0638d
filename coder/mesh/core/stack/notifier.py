"""Delivery of socket events to applications.

Lives here: events held back until a round of input or timers is over, accept queues.
Does not live here: what happened (see the flags of each socket).
"""

from __future__ import annotations

from coder.mesh.core.stack.datagrams import UdpSocket
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.listening import ListeningSocket
from coder.mesh.core.stack.tcp.states import TcpState

Socket = TcpSocket | UdpSocket | ListeningSocket


class Notifier:
    """Calls each socket's hook at most once per round, and never from inside the stack."""

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched: dict[Socket, None] = {}
        "Sockets in the order of their events."

    def flush(self) -> None:
        """Call the hooks at the end of a round. Hooks may touch other sockets."""
        touched = self.touched
        # Sockets are served one at a time. A hook may touch a socket that was served already: it is served again,
        # behind the others.
        while touched:
            socket = next(iter(touched))
            del touched[socket]
            if isinstance(socket, TcpSocket):
                if socket.accepted_by is not None:
                    self._queue_accepted(socket)
                if not socket.adopted:
                    continue
            hook = socket.on_event
            if hook is not None:
                hook(socket)  # type: ignore[arg-type]

    def _queue_accepted(self, socket: TcpSocket) -> None:
        """Hand a finished handshake to its listener, or drop a failed one."""
        listener = socket.accepted_by
        if not isinstance(listener, ListeningSocket) or socket.state is TcpState.SYN_RECEIVED:
            return
        socket.wait_in(None)
        # The listener is closed, so no application can accept it: without the reset the peer would believe itself
        # connected.
        if listener.closed:
            listener.handshake_failed(socket)
            socket.abort()
        elif socket.state is TcpState.CLOSED:
            listener.handshake_failed(socket)
        else:
            listener.handshake_done(socket)
            self.touched[listener] = None
