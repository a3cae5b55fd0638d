"""The application's interface to the overlay: listeners, dialling, forwarding of unbound ports, UDP, in-tunnel pings.

Lives here: the waiting around the stack's non-waiting verbs. `streams.py` has a connection as a stream.
Obeys docs/protocol/tsmp.md, and docs/protocol/overlay.md for forwarding (the SYN is answered only after the dial
worked).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address

import trio

from coder.mesh.core.stack.datagrams import UdpDatagram, UdpSocket
from coder.mesh.core.stack.events import StackEvent, TsmpAnswer
from coder.mesh.core.stack.interface import Stack
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.listening import ListeningSocket, PendingConnection
from coder.mesh.core.wire import tsmp
from coder.mesh.drivers.streams import TcpStream
from coder.mesh.fair_shares import FairShares

Forward = Callable[[int], Awaitable[trio.abc.HalfCloseableStream | None]]
"""Port -> the stream to join with an overlay connection, or None to refuse it."""
UdpForward = Callable[["UdpFlow"], Awaitable[None]]
"""Serves one flow of datagrams to an unbound port; the flow ends when it returns, or is cancelled for another peer's.
"""

FORWARD_BUFFER = 256 * 1024
MAX_FLOWS = 1024
"""Flows of datagrams to unbound ports, shared by peers."""
FLOW_QUEUE = 256
MAX_FLOW_BYTES = 512 * 1024
"""Bytes of a flow's queue: a thousand flows of the largest datagrams would be gigabytes."""
PING_LIFE = 10.0
"""Seconds after which an unanswered in-tunnel ping is forgotten."""

_STREAM_ERRORS = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class TcpListener(trio.abc.Listener[TcpStream]):
    """A listening port."""

    def __init__(self, listener: ListeningSocket, kick: Callable[[], None]) -> None:
        self._listener = listener
        self._kick = kick
        self._waiting = trio.lowlevel.ParkingLot()
        listener.on_event = self._on_event

    def _on_event(self, _: ListeningSocket) -> None:
        self._waiting.unpark_all()

    @property
    def port(self) -> int:
        """The overlay port."""
        return self._listener.port

    async def accept(self) -> TcpStream:
        """Return the next connection with a finished handshake."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._listener.closed:
                raise trio.ClosedResourceError
            socket = self._listener.accept_nowait()
            if socket is not None:
                return TcpStream(socket, self._kick)
            await self._waiting.park()

    async def aclose(self) -> None:
        """Stop listening."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """`aclose` without the checkpoint."""
        self._listener.close()
        self._waiting.unpark_all()
        self._kick()


class UdpPort:
    """A bound UDP port."""

    def __init__(self, socket: UdpSocket, kick: Callable[[], None]) -> None:
        self._socket = socket
        self._kick = kick
        self._waiting = trio.lowlevel.ParkingLot()
        socket.on_event = self._on_event

    def _on_event(self, _: UdpSocket) -> None:
        self._waiting.unpark_all()

    @property
    def port(self) -> int:
        """The overlay port."""
        return self._socket.port

    async def receive(self) -> UdpDatagram:
        """Return the next datagram."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._socket.closed:
                raise trio.ClosedResourceError
            datagram = self._socket.receive_nowait()
            if datagram is not None:
                return datagram
            await self._waiting.park()

    def send(self, payload: bytes, address: IPv6Address | IPv4Address, port: int) -> None:
        """Send a datagram; like all UDP it may get lost."""
        self._socket.send_nowait(payload, address.packed, port)
        self._kick()

    def close(self) -> None:
        """Release the port."""
        self._socket.close()
        self._waiting.unpark_all()


class UdpFlow:
    """Datagrams between a peer's port and an unbound port of ours."""

    def __init__(self, overlay: Overlay, first: UdpDatagram) -> None:
        self.port = first.port
        """Our port in the flow."""
        self.key = (first.source, first.source_port, first.port)
        self.scope = trio.CancelScope()
        """Cancelled when the flow gives way to another peer's."""
        self._overlay = overlay
        self._first = first
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._waiting = trio.lowlevel.ParkingLot()

    def arrived(self, payload: bytes) -> None:
        """Queue a datagram; the oldest is dropped when the reader is slow."""
        self._queue.append(payload)
        self._bytes += len(payload)
        while len(self._queue) > FLOW_QUEUE or self._bytes > MAX_FLOW_BYTES:
            self._bytes -= len(self._queue.popleft())
        self._waiting.unpark_all()

    async def receive(self) -> bytes:
        """Return the peer's next datagram."""
        await trio.lowlevel.checkpoint()
        while not self._queue:
            await self._waiting.park()
        payload = self._queue.popleft()
        self._bytes -= len(payload)
        return payload

    def send(self, payload: bytes) -> None:
        """Send a datagram back, from the port of the peer's datagrams."""
        first = self._first
        self._overlay.send_udp(first.destination, first.port, first.source, first.source_port, payload)


class AwaitedPong:
    """An in-tunnel ping that waits for its answer."""

    def __init__(self) -> None:
        self.event = trio.Event()
        self.latency = 0.0
        self.sent: dict[bytes, float] = {}


class Overlay:
    """The application side of the stack."""

    def __init__(self, stack: Stack, kick: Callable[[], None], nursery: trio.Nursery) -> None:
        self._stack = stack
        self._kick = kick
        self._nursery = nursery
        self._forward: Forward | None = None
        self._udp_forward: UdpForward | None = None
        self._flows: dict[tuple[bytes, int, int], UdpFlow] = {}
        self._flow_shares: FairShares[UdpFlow] = FairShares(MAX_FLOWS)
        self._pongs: dict[bytes, AwaitedPong] = {}
        stack.set_event_hook(self._on_stack_event)

    def close(self) -> None:
        """Reset all open connections."""
        self._stack.set_tcp_fallback(None)
        self._stack.set_udp_fallback(None)
        self._stack.close(trio.current_time())

    # -- TCP --------------------------------------------------------------------------------------------------------
    async def tcp_connect(self, destination: bytes, port: int) -> TcpStream:
        """Connect. Raises UnreachableError when refused or unanswered."""
        socket = self._stack.tcp_connect(destination, port, trio.current_time())
        stream = TcpStream(socket, self._kick)
        self._kick()
        try:
            await stream.wait_connected()
        except BaseException:
            stream.abort()
            raise
        return stream

    def tcp_listen(self, port: int) -> TcpListener:
        """Listen. Raises StackError (port_in_use) when the port is taken."""
        return TcpListener(self._stack.tcp_listen(port), self._kick)

    def set_tcp_forward(self, forward: Forward | None) -> None:
        """See Node.set_tcp_forward."""
        self._forward = forward
        self._stack.set_tcp_fallback(None if forward is None else self._on_syn)

    def _on_syn(self, pending: PendingConnection) -> None:
        self._nursery.start_soon(self._decide, pending)

    async def _decide(self, pending: PendingConnection) -> None:
        target = None
        try:
            if self._forward is not None:
                target = await self._forward(pending.port)
        except Exception:  # a forward is an application's: its bugs refuse a connection, they do not end the node
            target = None
        socket: TcpSocket | None = None
        if target is None:
            pending.reset()
        else:
            socket = pending.accept()
        self._kick()
        if target is not None and socket is not None:
            try:
                await join(TcpStream(socket, self._kick), target)
            except Exception:  # as above: a failing target ends only its own connection
                return
        elif target is not None:
            await trio.aclose_forcefully(target)

    # -- UDP --------------------------------------------------------------------------------------------------------
    def udp_bind(self, port: int) -> UdpPort:
        """Bind a port. Raises StackError (port_in_use, no_ports)."""
        return UdpPort(self._stack.udp_bind(port), self._kick)

    def send_udp(self, source: bytes, source_port: int, destination: bytes, port: int, payload: bytes) -> None:
        """Send from any of our addresses and ports."""
        self._stack.udp_send(source, source_port, destination, port, payload)
        self._kick()

    def set_udp_forward(self, forward: UdpForward | None) -> None:
        """See Node.set_udp_forward."""
        self._udp_forward = forward
        self._stack.set_udp_fallback(None if forward is None else self._on_datagram)

    def _on_datagram(self, datagram: UdpDatagram) -> None:
        key = (datagram.source, datagram.source_port, datagram.port)
        flow = self._flows.get(key)
        if flow is None:
            if self._flow_shares.is_full:
                victim = self._flow_shares.evictable_for(datagram.source)
                if victim is None:
                    return
                self._forget_flow(victim)
                victim.scope.cancel()
            flow = self._flows[key] = UdpFlow(self, datagram)
            self._flow_shares.add(datagram.source, flow)
            self._nursery.start_soon(self._serve_flow, flow)
        flow.arrived(datagram.payload)

    async def _serve_flow(self, flow: UdpFlow) -> None:
        try:
            with flow.scope:
                if self._udp_forward is not None:
                    await self._udp_forward(flow)
        except _STREAM_ERRORS:
            pass  # the local end is closed: the next datagram opens a new flow
        finally:
            self._forget_flow(flow)

    def _forget_flow(self, flow: UdpFlow) -> None:
        # A flow that lost its place may end after a new one took its key.
        if self._flows.get(flow.key) is flow:
            del self._flows[flow.key]
        self._flow_shares.discard(flow.key[0], flow)

    # -- in-tunnel pings --------------------------------------------------------------------------------------------
    def expect_pong(self) -> AwaitedPong:
        """Return an awaitable pong; see `send_ping` and `forget_pong`."""
        return AwaitedPong()

    def send_ping(self, destination: bytes, pong: AwaitedPong) -> None:
        """Ping the peer that owns the address."""
        token = os.urandom(tsmp.TOKEN_SIZE)
        now = trio.current_time()
        pong.sent[token] = now
        self._pongs[token] = pong
        self._stack.tsmp_ping(destination, token)
        self._kick()

    def forget_pong(self, pong: AwaitedPong) -> None:
        """Stop waiting."""
        for token in pong.sent:
            self._pongs.pop(token, None)

    def _on_stack_event(self, event: StackEvent) -> None:
        pong = self._pongs.pop(event.token, None) if isinstance(event, TsmpAnswer) else None
        if pong is not None and isinstance(event, TsmpAnswer):
            pong.latency = trio.current_time() - pong.sent[event.token]
            pong.event.set()


async def join(first: trio.abc.HalfCloseableStream, second: trio.abc.HalfCloseableStream) -> None:
    """Copy in both directions until both ended or one broke; then close both streams."""
    async with first, second:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_copy, first, second)
                nursery.start_soon(_copy, second, first)
        except* Exception as group:
            if isinstance(first, TcpStream):
                first.abort()  # the peer should learn that its connection broke, not that it ended
            _, unexpected = group.split(_STREAM_ERRORS)
            if unexpected is not None:
                raise unexpected from None


async def _copy(source: trio.abc.ReceiveStream, sink: trio.abc.HalfCloseableStream) -> None:
    while data := await source.receive_some(FORWARD_BUFFER):
        await sink.send_all(data)
    await sink.send_eof()
