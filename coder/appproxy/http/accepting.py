"""Accepting of connections in batches: a client does not wait behind others that come and go.

The kernel queues connections in the order of their arrival, and drops further ones once the queue is full; their
clients try again after one second and after three. So the queue is emptied as often as the event loop comes round, and
a connection that has to be refused costs no task: it is closed where it was accepted. Neither does one whose address
has used up its part of the event loop: it is parked until its turn.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import math
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import cast

import trio

from coder.appproxy.http.connection_shares import (
    CONNECTION_COST,
    HANDSHAKE_COST,
    ClientConnection,
    ConnectionShares,
)
from coder.appproxy.http.listening_sockets import ClientListener, ClientStream
from coder.base.exception_groups import single_failure
from coder.base.log import STRANGERS_LINES, get_logger

_log = get_logger("http.listener", per_minute=STRANGERS_LINES)

RETRY_ACCEPT = 0.1
"Seconds; as `trio.serve_listeners`."
BATCH = 512
"""Connections that are accepted before other tasks run."""
BATCH_SECONDS = 0.005
"""Seconds after which other tasks run, whatever is left in the queue."""
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""Errors of `accept` while the process or the system has no room for another connection."""
_CLOSED = frozenset({errno.EBADF, errno.ENOTSOCK, errno.EINVAL})
"""Errors of `accept` on a socket that does not listen (any more). All others concern one connection: accept(2) reports
errors of the network that way."""
MAX_WAIT = 20.0
"""Seconds that a connection may have to wait for the turn of its address; one that had to wait longer is closed."""
LOG_EVERY = 60.0
"""Seconds between two log lines about connections that cannot be accepted."""


Serve = Callable[[ClientStream, ClientConnection], object]
"""Starts to serve a connection; does not wait."""


class Acceptor:
    """Accepts the connections of one listener. When the process has no file descriptor left, it waits:
    `trio.serve_listeners` does as well, and writes a traceback ten times a second."""

    def __init__(self, listener: ClientListener, shares: ConnectionShares, serve: Serve) -> None:
        self._context = listener._ssl_context if isinstance(listener, trio.SSLListener) else None
        tcp = listener.transport_listener if isinstance(listener, trio.SSLListener) else listener
        self._cost = CONNECTION_COST + HANDSHAKE_COST * (self._context is not None)
        self._listener = listener
        self._socket = cast("trio.SocketListener", tcp).socket
        self._shares = shares
        self._serve = serve
        self._parked: list[tuple[float, int, socket.socket, ClientConnection]] = []
        """Heap of connections whose addresses have to wait, with the time and the order of their turns."""
        self._dropped = 0
        """Parked connections that have been closed and are still in the heap."""
        self._order = itertools.count()
        self._has_parked = trio.Event()
        self._logged_at = -math.inf

    async def run(self) -> None:
        """Accept until cancelled, then close the listener. Raises OSError for a socket that does not listen."""
        try:
            with single_failure():
                await self._accept_for_ever()
        finally:
            for _, _, accepted, connection in list(self._parked):
                self._drop(accepted, connection)

    async def _accept_for_ever(self) -> None:
        async with self._listener, trio.open_nursery() as nursery:
            nursery.start_soon(self._serve_parked)
            while True:
                await trio.lowlevel.wait_readable(self._socket)
                try:
                    self.accept_batch()
                except OSError as error:
                    if error.errno not in NO_ROOM:
                        raise
                    self._log_wait(error)
                    await trio.sleep(RETRY_ACCEPT)

    def accept_batch(self) -> None:
        """Serve the waiting connections, or park them, or close them. Raises OSError of NO_ROOM, and for a socket that
        does not listen."""
        until = time.perf_counter() + BATCH_SECONDS
        for _ in range(BATCH):
            try:
                accepted, address = self._accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in NO_ROOM | _CLOSED:
                    raise
                continue
            connection = self._shares.admit(str(address[0]), accepted.close)
            if connection is None:
                accepted.close()
            else:
                self._begin(accepted, connection)
            if time.perf_counter() >= until:
                return

    def _begin(self, accepted: socket.socket, connection: ClientConnection) -> None:
        delay = connection.charge(self._cost)
        if delay <= 0:
            self._serve(self._stream(accepted), connection)
            return
        if delay > MAX_WAIT:
            self._shares.overload.set(connection.network)
            connection.refund()
            self._shares.release(connection)
            accepted.close()
            return
        connection.close = partial(self._drop, accepted, connection)
        heapq.heappush(self._parked, (trio.current_time() + delay, next(self._order), accepted, connection))
        self._has_parked.set()

    async def _serve_parked(self) -> None:
        """Serve each parked connection when the turn of its address comes."""
        while True:
            while self._parked and self._parked[0][0] <= trio.current_time():
                _, _, accepted, connection = heapq.heappop(self._parked)
                if connection.has_ended:
                    self._dropped -= 1
                else:
                    self._serve(self._stream(accepted), connection)
            self._has_parked = trio.Event()
            with trio.move_on_at(self._parked[0][0] if self._parked else math.inf):
                await self._has_parked.wait()

    def _drop(self, accepted: socket.socket, connection: ClientConnection) -> None:
        if not connection.has_ended:
            self._shares.release(connection)
            accepted.close()
            self._dropped += 1
            if 2 * self._dropped > len(self._parked):
                self._parked = [parked for parked in self._parked if not parked[3].has_ended]
                heapq.heapify(self._parked)
                self._dropped = 0

    def _accept(self) -> tuple[socket.socket, tuple[str, int]]:
        return self._socket._sock.accept()  # type: ignore[attr-defined, no-any-return]

    def _stream(self, accepted: socket.socket) -> ClientStream:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
        if self._context is None:
            return stream
        return trio.SSLStream(stream, self._context, server_side=True, https_compatible=True)

    def _log_wait(self, error: OSError) -> None:
        now = trio.current_time()
        if now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            _log.error("new connections wait until others have closed", error=error)
