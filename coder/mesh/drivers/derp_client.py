"""Relay connections of a node: one per region, the home one for ever, others while they are used.

Lives here: dialling through the injected dialer, the handshake, queues, reconnecting. Which region a packet should
take is `core/paths/relays.py`; frames are `core/wire/derp.py`; HTTP is the dialer's.
Obeys docs/protocol/derp.md, "What a client does".
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import random
from typing import Protocol

import trio

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import CryptoError, MeshError, WireError
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.paths.keepalive import Keepalive
from coder.mesh.core.paths.relays import IDLE_CLOSE, IDLE_SCAN
from coder.mesh.core.wire import derp, derp_info, derp_reader
from coder.mesh.drivers.framing import HEADER_SIZE, KEY_END, Inbox, keep_unsent_short, relay_frames
from coder.mesh.drivers.region import first_to_answer
from coder.mesh.drivers.transport import DerpDialer, DerpTransport
from coder.mesh.errors import RelayError

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 120.0
PING_TIMEOUT = 3.0
ANSWER_TIMEOUT = 6.0
"""Ours: seconds a ping on an idle connection may go unanswered; data that waits for a repetition is not lost yet."""
FIRST_RETRY = 0.1
LAST_RETRY = 2.5
"""Ours: upstream waits up to 5 s. A relay that restarts should not be noticed by people at a shell."""
STEADY = 10.0
"""A connection that lived this long starts the next series of attempts anew."""
QUEUE_PACKETS = 1024
"""Ours: enough for a congestion window while a connection is being made; the oldest are dropped."""
QUEUE_BYTES = 4 << 20
LONG_QUEUE = 256 * 1024
"""Ours: bytes beyond which the stack is asked to wait. A longer queue only adds delay, losing packets costs more."""
SHORT_QUEUE = 64 * 1024
FLUSH_BYTES = 131_072
MAX_RESTART_WAIT = 30.0

_NETWORK_ERRORS = (
    OSError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    trio.TooSlowError,
    WireError,
    CryptoError,
    MeshError,
)


_CUTS = (OSError, trio.BrokenResourceError, RelayError)
"""How a connection ends when something on the way ends it."""


class RelayEvents(Protocol):
    """What the owner of the connections is told; called synchronously."""

    def relay_packets(self, region: int, source: bytes, packets: list[bytes]) -> None:
        """Packets of one peer, in order."""

    def relay_flush(self) -> None:
        """Everything that was waiting has been delivered: work on it now."""

    def relay_drained(self, region: int) -> None:
        """A queue that `send` called long is short again."""

    def relay_peer_gone(self, region: int, key: bytes) -> None:
        """The peer is not (any longer) at this region."""

    def relay_connected(self, region: int, connected: bool) -> None:
        """A connection was made or lost."""


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """One region's connection, for people."""

    region: int
    connected: bool
    is_home: bool
    problem: str
    """Why it is not connected, or what the relay complains about; empty when all is well."""
    forced_websocket: str
    dropped: int
    transport: str = ""
    """By what it is connected: `upgrade`, `websocket` or `stream`."""
    keepalive: float = 0.0
    """Seconds of silence after which we speak."""


@dataclass(frozen=True, slots=True)
class _Reached:
    """A node that knows us."""

    node: str
    transport: DerpTransport
    inbox: Inbox
    shared: SharedBox

    async def drop(self) -> None:
        await trio.aclose_forcefully(self.transport.stream)


class _Connection:
    """One region's connection and what waits to be sent through it."""

    def __init__(self, pool: RelayPool, region: int) -> None:
        self.pool = pool
        self.region = region
        self.queue: deque[tuple[int, bytes]] = deque()
        self.queued_packets = 0
        self.queued_bytes = 0
        self.control: list[bytes] = []
        self.is_long = False
        self.wake = trio.Event()
        self.scope = trio.CancelScope()
        self.connected = False
        self.used = trio.current_time()
        self.problem = "connecting"
        self.forced_websocket = ""
        self.transport_kind = ""
        self.dropped = 0
        self.unproven = ""
        """The node that was reached and has not welcomed us: if it hangs up instead, others are asked before it."""
        self.restart_in = 0.0
        self.heard = object()
        self.answered = trio.Event()
        """Whether anything came since `_stay_warm` asked last."""
        """Replaced whenever something arrives."""
        self.heard_at = self.said_at = 0.0
        self.is_goodbye = False
        """The relay said that it will go."""
        self.unanswered = 0.0
        """How long nothing had been said when a ping was not answered."""
        self.attempt: trio.CancelScope | None = None
        self.hurry = trio.Event()
        """Set to end a pause between attempts."""

    def push(self, packets: int, frames: bytes) -> bool:
        """Queue frames; False when the queue is long now."""
        self.used = trio.current_time()
        self.queue.append((packets, frames))
        self.queued_packets += packets
        self.queued_bytes += len(frames)
        while (self.queued_packets > QUEUE_PACKETS or self.queued_bytes > QUEUE_BYTES) and len(self.queue) > 1:
            self.dropped += self._pop()[0]
        self.wake.set()
        if self.queued_bytes > LONG_QUEUE:
            self.is_long = True
        return not self.is_long

    def put_control(self, frame: bytes) -> None:
        self.control.append(frame)
        self.wake.set()

    def _pop(self) -> tuple[int, bytes]:
        packets, frames = self.queue.popleft()
        self.queued_packets -= packets
        self.queued_bytes -= len(frames)
        return packets, frames

    def take(self) -> bytes:
        parts = self.control
        self.control = []
        size = 0
        while self.queue and size < FLUSH_BYTES:
            frames = self._pop()[1]
            size += len(frames)
            parts.append(frames)
        return b"".join(parts)

    async def check(self) -> None:
        """Ping the relay; break the connection when nothing comes back."""
        asked = self.heard
        self.put_control(derp.DerpPing(self.pool.random(8)).encode())
        await trio.sleep(PING_TIMEOUT)
        if self.heard is asked and self.attempt is not None:
            self.problem = "the relay did not answer"
            self.attempt.cancel()

    # -- the connection's life --------------------------------------------------------------------------------------
    async def run(self) -> None:
        with self.scope:
            delay = FIRST_RETRY
            while True:
                began = trio.current_time()
                try:
                    with trio.CancelScope() as self.attempt:
                        await self._live()
                        self.problem = "the relay closed the connection"
                except* _NETWORK_ERRORS as group:
                    self.problem = explain(group)
                self._lost()
                if self.region != self.pool.home and trio.current_time() - self.used > IDLE_CLOSE:
                    break
                if trio.current_time() - began > STEADY:
                    delay = FIRST_RETRY
                self.hurry = trio.Event()
                with trio.move_on_after(max(self.restart_in, delay * (0.5 + random() / 2))):
                    await self.hurry.wait()
                self.restart_in = 0.0
                delay = min(2 * delay, LAST_RETRY)
        self._lost()
        self.pool.ended(self)

    def _lost(self) -> None:
        if self.is_long:
            # Whatever waits is told to go on: it may choose another path, and the queue drops what it must.
            self.is_long = False
            self.pool.events.relay_drained(self.region)
        if self.connected:
            self.connected = False
            self.control.clear()
            self.pool.events.relay_connected(self.region, False)

    async def _live(self) -> None:
        reached = await self._reach()
        transport, inbox, shared = reached.transport, reached.inbox, reached.shared
        async with transport.stream:
            self.unproven = reached.node
            self.forced_websocket, self.transport_kind = transport.forced_websocket, transport.kind
            self.connected = True
            self.is_goodbye = False
            self.heard_at = self.said_at = began = trio.current_time()
            self.problem = ""
            self.control.insert(0, derp.NotePreferred(self.region == self.pool.home).encode())
            self.wake.set()
            self.pool.events.relay_connected(self.region, True)
            self.unanswered = 0.0
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write, transport.stream)
                    nursery.start_soon(self._stay_warm)
                    await self._read(inbox, shared)
                    nursery.cancel_scope.cancel()
            except* _CUTS as group:
                self._learn_from_cut(began)
                raise group from None
            self._learn_from_cut(began)

    def _learn_from_cut(self, began: float) -> None:
        """The connection ended without our wish: was it for its silence?"""
        now = trio.current_time()
        silence = self.unanswered or now - max(self.heard_at, self.said_at)
        if not self.is_goodbye:
            self.pool.keepalive(self.region).on_cut(silence, now - began)

    async def _reach(self) -> _Reached:
        """Dial and log in: to the node that worked last, else to another."""
        region = self.pool.derp_map.regions.get(self.region)
        nodes = region.relay_nodes() if region else ()
        if region is None or not nodes:
            raise RelayError(f"region {self.region} has no relay")
        last = self.pool.worked.get(self.region)
        found = None
        try:
            with trio.move_on_after(CONNECT_TIMEOUT):
                found = await first_to_answer(
                    sorted(nodes, key=lambda node: (node.name == self.unproven, node.name != last)),
                    lambda node: self._reach_node(region, node),
                    _Reached.drop,
                )
        except Exception as error:
            raise RelayError(f"cannot connect to the relay of region {self.region}") from error
        if found is None:
            raise RelayError(f"no relay of region {self.region} answered within {CONNECT_TIMEOUT:g} s")
        return found

    async def _reach_node(self, region: DerpRegion, node: DerpNode) -> _Reached:
        transport = await self.pool.dialer(region, node)
        try:
            keep_unsent_short(transport.stream)
            inbox = Inbox(transport.stream, transport.leftover)
            return _Reached(node.name, transport, inbox, await self._log_in(transport.stream, inbox))
        except BaseException:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(transport.stream)
            raise

    async def _log_in(self, stream: trio.abc.Stream, inbox: Inbox) -> SharedBox:
        hello = await inbox.frame()
        if not isinstance(hello, derp.ServerKey):
            raise WireError("unexpected_frame", "the first frame of a relay is its key")
        private = self.pool.private_key
        shared = SharedBox(private, hello.key)
        info = derp_info.seal_client_info(shared, private.public, self.pool.random(NONCE_SIZE), derp_info.ClientInfo())
        await stream.send_all(info.encode())
        return shared

    async def _write(self, stream: trio.abc.Stream) -> None:
        while True:
            await self.wake.wait()
            self.wake = trio.Event()
            while data := self.take():
                await stream.send_all(data)
                self.said_at = trio.current_time()
                if self.is_long and self.queued_bytes < SHORT_QUEUE:
                    self.is_long = False
                    self.pool.events.relay_drained(self.region)

    async def _stay_warm(self) -> None:
        """Speak before whatever is on the way takes silence for death, and notice when it did."""
        while True:
            interval, quiet_since = self.pool.keepalive(self.region).interval, max(self.heard_at, self.said_at)
            await trio.sleep_until(quiet_since + interval)
            if max(self.heard_at, self.said_at) > quiet_since:
                continue
            self.answered = trio.Event()
            self.put_control(derp.DerpPing(self.pool.random(8)).encode())
            with trio.move_on_after(ANSWER_TIMEOUT):
                await self.answered.wait()
                continue  # at once: the next silence may be punished sooner than an answer is given up
            self.unanswered = interval
            raise RelayError("the relay did not answer")

    async def _read(self, inbox: Inbox, shared: SharedBox) -> None:
        while True:
            self._digest(inbox.buffer, shared)
            with trio.fail_after(READ_TIMEOUT):
                if not await inbox.more():
                    return
            self.heard = object()
            self.heard_at = trio.current_time()
            self.answered.set()

    def _digest(self, buffer: bytearray, shared: SharedBox) -> None:
        """Handle every whole frame, packets in runs of one peer."""
        at, size = 0, len(buffer)
        source = b""
        packets: list[bytes] = []
        events, region = self.pool.events, self.region
        unpack, recv = derp.HEADER.unpack_from, derp.RECV_PACKET
        got = False
        while size - at >= HEADER_SIZE:
            kind, length = unpack(buffer, at)
            if length > derp.MAX_FRAME:
                raise WireError("frame_too_long")
            end = at + HEADER_SIZE + length
            if end > size:
                break
            if kind == recv and length > 32:
                key = bytes(buffer[at + HEADER_SIZE : at + KEY_END])
                if key != source and packets:
                    events.relay_packets(region, source, packets)
                    packets = []
                source = key
                packets.append(bytes(buffer[at + KEY_END : end]))
                got = True
            else:
                self._on_frame(kind, bytes(buffer[at + HEADER_SIZE : end]), shared)
            at = end
        del buffer[:at]
        if packets:
            events.relay_packets(region, source, packets)
        if got:
            self.used = trio.current_time()
            events.relay_flush()

    def _on_frame(self, kind: int, body: bytes, shared: SharedBox) -> None:
        match derp_reader.parse_untrusted(kind, body):
            case derp.DerpPing(data):
                self.put_control(derp.DerpPong(data).encode())
            case derp.PeerGone(key):
                self.pool.events.relay_peer_gone(self.region, key)
            case derp.SealedServerInfo() as sealed:
                derp_info.open_server_info_untrusted(shared, sealed)
                if self.unproven:
                    self.pool.worked[self.region], self.unproven = self.unproven, ""
            case derp.Health(problem):
                self.problem = problem[:200]
            case derp.Restarting(reconnect_in_ms):
                self.restart_in = min(reconnect_in_ms / 1000, MAX_RESTART_WAIT)
                self.is_goodbye = True
            case _:
                pass  # keepalives have done their work by arriving


class RelayPool:
    """All relay connections of one node."""

    def __init__(
        self,
        nursery: trio.Nursery,
        dialer: DerpDialer,
        private_key: PrivateKey,
        derp_map: DerpMap,
        events: RelayEvents,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.dialer = dialer
        self.private_key = private_key
        self.derp_map = derp_map
        self.events = events
        self.home = 0
        self.random = random_bytes
        self.worked: dict[int, str] = {}
        """The node of each region that was reached last."""
        self._nursery = nursery
        self._connections: dict[int, _Connection] = {}
        self._keepalives: dict[int, Keepalive] = {}

    def send(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        """Queue packets for a peer; a connection is made when there is none. The packets are copied.

        False when the queue is long: `relay_drained` will be called when it is short again.
        """
        connection = self._connections.get(region)
        if connection is None:
            if region not in self.derp_map.regions:
                return True
            connection = self._open(region)
        return connection.push(len(packets), relay_frames(derp.SEND_PACKET, to, packets))

    def set_home(self, region: int) -> None:
        """Keep a connection to this region for ever."""
        if region == self.home:
            return
        old, self.home = self.home, region
        for number, preferred in ((old, False), (region, True)):
            connection = self._connections.get(number)
            if connection is not None and connection.connected:
                connection.put_control(derp.NotePreferred(preferred).encode())
        if region and region not in self._connections:
            self._open(region)

    def set_map(self, derp_map: DerpMap) -> None:
        """Use another map; connections to regions that changed or vanished are closed."""
        old, self.derp_map = self.derp_map, derp_map
        for number in list(self._connections):
            if old.regions.get(number) != derp_map.regions.get(number):
                self._connections[number].scope.cancel()

    def check(self) -> None:
        """Our network may have changed: connections that do not answer a ping within three seconds are made anew."""
        for connection in self._connections.values():
            if connection.connected:
                self._nursery.start_soon(connection.check)
            else:
                connection.hurry.set()

    def keepalive(self, region: int) -> Keepalive:
        """What is known of silences on the way to a region; outlives its connections."""
        return self._keepalives.setdefault(region, Keepalive())

    def forced_websockets(self) -> dict[int, str]:
        """Region -> why its connection uses a WebSocket."""
        return {r: c.forced_websocket for r, c in self._connections.items() if c.forced_websocket}

    def is_connected(self, region: int) -> bool:
        """Whether packets for this region leave at once."""
        connection = self._connections.get(region)
        return connection is not None and connection.connected

    def status(self) -> list[RelayStatus]:
        """Every connection."""
        return [
            RelayStatus(
                c.region,
                c.connected,
                c.region == self.home,
                c.problem,
                c.forced_websocket,
                c.dropped,
                c.transport_kind,
                self.keepalive(c.region).interval,
            )
            for c in self._connections.values()
        ]

    def ended(self, connection: _Connection) -> None:
        """A connection's task is over."""
        if self._connections.get(connection.region) is not connection:
            return
        del self._connections[connection.region]
        if connection.region == self.home and self.home in self.derp_map.regions:
            self._open(self.home)

    async def close_idle(self) -> None:
        """Close connections nobody uses, for ever."""
        while True:
            await trio.sleep(IDLE_SCAN)
            deadline = trio.current_time() - IDLE_CLOSE
            for connection in list(self._connections.values()):
                if connection.region != self.home and connection.used <= deadline:
                    connection.scope.cancel()

    def _open(self, region: int) -> _Connection:
        connection = self._connections[region] = _Connection(self, region)
        self._nursery.start_soon(connection.run)
        return connection


def explain(group: BaseExceptionGroup[Exception]) -> str:
    """The first cause in a group, in words."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, RelayError) and error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
