"""Whose application has to be told that something happened to a socket.

Lives here: events held back until a round of input or timers is over, accept queues.
Does not live here: what happened (the sockets' flags say).
"""

from __future__ import annotations

from coder.mesh.core.stack.datagrams import UdpSocket
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.listening import ListeningSocket
from coder.mesh.core.stack.tcp.states import TcpState

Socket = TcpSocket | UdpSocket | ListeningSocket


class Notifier:
    """Hooks are called once per round and socket, however much happened to it, and never from inside the stack."""

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched: dict[Socket, None] = {}
        "In the order in which something happened to them."

    def flush(self) -> None:
        """The round is over: call the hooks. What they do may touch others."""
        touched = self.touched
        # One at a time, as a hook may touch a socket that has been served: it is served again, behind the others.
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
        # Nobody can accept it any more: without the reset the peer would believe itself connected.
        if listener.closed:
            listener.opened(None)
            socket.abort()
        elif socket.state is TcpState.CLOSED:
            listener.opened(None)
        else:
            listener.opened(socket)
            self.touched[listener] = None
