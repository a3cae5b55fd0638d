"""Connections from this server to applications: over our own mesh node to a port of the agent, kept for reuse.

The agent forwards a port to the workspace's loopback. TLS towards an application is not verified: there is no hop
between it and its agent, and certificates inside of workspaces are self-signed. Not here: the exchange
(`forwarding.py`).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from uuid import UUID

import h11
import trio

from coder.appproxy.agents import dialing
from coder.appproxy.agents.dialing import Dials
from coder.net.bounded_http import BoundedHttp

if TYPE_CHECKING:
    from coder.tailnet.agent_dialer import AgentStream

MAX_HEAD = 256 << 10
"""Bytes of a response head. Some frameworks store whole sessions in cookies."""
READ_SIZE = 64 << 10
MAX_IDLE = 6
IDLE_SECONDS = 60.0
"""Seconds an idle connection is kept, in a number per port as upstream's: it keeps them ten minutes, but development
servers close theirs after five seconds to a minute."""


Sent = h11.Request | h11.Response | h11.InformationalResponse | h11.Data | h11.EndOfMessage
"""Events that may be written to a connection."""


LAST_SECONDS = 2.0
"""Ours: seconds that exchanges get once the server stops. Event streams never end on their own."""


@dataclass(frozen=True, slots=True)
class Target:
    """Address of an application."""

    agent_id: UUID
    port: int
    tls: bool


@dataclass(slots=True, eq=False)
class AppConnection:
    """HTTP/1.1 connection to an application."""

    stream: trio.abc.Stream
    transport: AgentStream | None = None
    """Transport of `stream`: itself, or below its TLS."""
    reused: bool = False
    idle_since: float = 0.0
    h11: BoundedHttp = field(default_factory=lambda: BoundedHttp(h11.CLIENT, max_incomplete_event_size=MAX_HEAD))

    async def send(self, *events: Sent) -> None:
        data = b"".join(self.h11.send(event) or b"" for event in events)
        if data:
            await self.stream.send_all(data)

    async def receive(self) -> None:
        """Wait for bytes, or for the end."""
        self.h11.receive_data(bytes(await self.stream.receive_some(READ_SIZE)))

    async def abandon(self) -> None:
        """Reset the connection, because the browser disconnected before its response was complete.

        Half a request is of no use to the application, which the reset reports as incomplete. A complete request that
        is still in flight is delivered first, as a browser may send one and disconnect; the mesh bounds the time.
        """
        transport = self.transport
        if transport is not None and not (self.h11.our_state is h11.DONE and transport.unacknowledged):
            transport.abort()
        await self.aclose()

    async def aclose(self) -> None:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self.stream)


class AppPool:
    """Idle connections of this process."""

    def __init__(self, world: Dials) -> None:
        self._world = world
        self._idle: dict[Target, list[AppConnection]] = {}
        self.exchanges: set[trio.CancelScope] = set()
        """Exchanges in progress: they end with the server, however long they would last."""

    async def connect(self, target: Target, *, fresh: bool) -> AppConnection:
        """Return a connection; a kept one unless `fresh`. Raises BadGateway."""
        while not fresh and (kept := self._idle.get(target)):
            connection = kept.pop()
            if trio.current_time() - connection.idle_since < IDLE_SECONDS:
                connection.reused = True
                return connection
            await connection.aclose()
        return await self._dial(target)

    async def _dial(self, target: Target) -> AppConnection:
        stream = await dialing.dial(self._world, target.agent_id, target.port)
        if not target.tls:
            return AppConnection(stream, stream)
        secure = trio.SSLStream(stream, _unverified(), server_hostname="localhost", https_compatible=True)
        try:
            with trio.fail_after(dialing.DIAL_TIMEOUT):
                await secure.do_handshake()
        except BaseException as error:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)
            if isinstance(error, trio.BrokenResourceError | trio.TooSlowError | ssl.SSLError):
                raise dialing.unanswered("the application does not speak TLS") from error
            raise
        return AppConnection(secure, stream)

    async def put(self, target: Target, connection: AppConnection) -> None:
        """Keep a connection whose last exchange is complete; close any other."""
        if connection.h11.our_state is h11.DONE and connection.h11.their_state is h11.DONE:
            kept = self._idle.setdefault(target, [])
            if not connection.h11.trailing_data[0] and len(kept) < MAX_IDLE:
                connection.h11.start_next_cycle()
                connection.idle_since = trio.current_time()
                kept.append(connection)
                return
        await connection.aclose()

    async def drop_idle(self, older_than: float) -> None:
        """Close connections that were idle for so many seconds."""
        now = trio.current_time()
        for target, kept in list(self._idle.items()):
            old = [connection for connection in kept if now - connection.idle_since >= older_than]
            self._idle[target] = [connection for connection in kept if connection not in old]
            if not self._idle[target]:
                del self._idle[target]
            for connection in old:
                await connection.aclose()


@lru_cache(maxsize=1)
def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


async def keep_tidy(pool: AppPool, stopping: trio.Event) -> None:
    """Close idle connections; when the process stops, also those in use."""
    while not stopping.is_set():
        with trio.move_on_after(IDLE_SECONDS / 2):
            await stopping.wait()
        await pool.drop_idle(0 if stopping.is_set() else IDLE_SECONDS)
    if pool.exchanges:
        await trio.sleep(LAST_SECONDS)
    for scope in pool.exchanges:
        scope.cancel()
