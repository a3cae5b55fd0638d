"""Event loop of a node: datagrams in, work, datagrams out, one timer.

Lives here: reading sockets, the one sleeping task, and the endpoint's `Sink`. There is no task per peer and no trio
call per packet. Everything between a readable socket and its answers happens synchronously; only application tasks are
woken. `core/endpoint.py` decides.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

import trio

from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.endpoint import Endpoint
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.paths.selector import PathState
from coder.mesh.drivers.derp_client import RelayPool
from coder.mesh.drivers.udp import DatagramSocket, Sent
from coder.mesh.errors import UdpUnavailableError

RELAYED_BURST = 4 << 20
"""Ours: relays have their own flow control, so only memory is at stake."""
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class PumpEvents(Protocol):
    """Events that the pump passes on; called synchronously."""

    def on_stun(self, datagram: bytes) -> None:
        """Process a STUN message."""

    def on_ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        """See `Sink.ping_answered`."""

    def on_needs_endpoints(self) -> None:
        """See `Sink.needs_endpoints`."""

    def on_peer_alive(self, peer: PublicKey) -> None:
        """See `Sink.peer_alive`."""

    def on_path_changed(self, peer: PublicKey, state: PathState, address: Address | None) -> None:
        """See `Sink.path_changed`."""

    def on_relay_connected(self, region: int, connected: bool) -> None:
        """Note that a relay connection was opened or lost."""


class Pump:
    """The endpoint's sink and the relays' listener. Set `endpoint` and `relays` before running it."""

    endpoint: Endpoint
    relays: RelayPool

    def __init__(self, events: PumpEvents, clock: Callable[[], float] | None = None) -> None:
        self.sockets: dict[socket.AddressFamily, DatagramSocket] = {}
        self._events = events
        # trio.current_time looks up the run and its clock every time: 1 us, and a keystroke needs it four times.
        self._clock = clock or trio.lowlevel.current_clock().current_time
        self._timer = trio.CancelScope()
        self._wanted_port = 0
        self._nursery: trio.Nursery | None = None
        self._is_busy = False
        self._deadline = inf
        """Deadline of the timer; reading it from the scope costs more than the comparison."""

    # -- sockets ----------------------------------------------------------------------------------------------------
    def open_sockets(self, port: int) -> None:
        """Bind one socket per family of the system. Raises UdpUnavailableError when it has none."""
        failure: OSError | None = None
        self._wanted_port = port
        for family in _FAMILIES:
            try:
                self.sockets[family] = DatagramSocket(family, port)
            except OSError as error:
                failure = error
        if not self.sockets:
            raise UdpUnavailableError("no UDP socket could be opened") from failure

    def reopen_sockets(self) -> None:
        """Bind new ports, where the caller did not request one: the machine may be in another network now.

        Routers remember the old port with the old address. They would give the same port a mapping that depends on the
        destination, until they forget (two minutes on Linux). This also covers a system that removed the old sockets
        while it slept. Call while running.
        """
        for family, old in list(self.sockets.items()):
            try:
                new = DatagramSocket(family, self._wanted_port)
            except OSError:
                continue  # a fixed port, which the old socket still holds; or no ports are left
            self.sockets[family] = new
            if self._nursery is not None:
                self._nursery.start_soon(self._read, new)
            trio.lowlevel.notify_closing(old.sock)
            old.close()

    def close_sockets(self) -> None:
        """Release the ports."""
        for sock in self.sockets.values():
            sock.close()
        self.sockets.clear()

    def port(self, family: socket.AddressFamily) -> int:
        """Return the bound port, 0 when there is no socket of the family."""
        sock = self.sockets.get(family)
        return sock.port if sock else 0

    @property
    def burst_bytes(self) -> int:
        """Return the burst that arrives without loss: the true capacity of the smallest receive buffer.

        Linux charges a datagram with its bookkeeping, about as much again as its payload.
        """
        return min((sock.receive_buffer // 2 for sock in self.sockets.values()), default=RELAYED_BURST)

    # -- running ----------------------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Read and run timers until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for sock in self.sockets.values():
                nursery.start_soon(self._read, sock)
            await self._run_timers()

    async def _read(self, sock: DatagramSocket) -> None:
        endpoint, wait, clock, readable = self.endpoint, trio.lowlevel.wait_readable, self._clock, sock.sock.fileno()

        def receive(buffer: bytearray, size: int, segment: int, source: Address) -> None:
            endpoint.receive_udp(buffer, size, segment, source, now)

        # `notify_closing` does not reach a reader that is already scheduled. Such a reader must not wait again: the
        # closed descriptor's number may belong to the new socket, and trio refuses a second reader, which would end the
        # node.
        while sock.is_open:
            try:
                await wait(readable)
            except trio.ClosedResourceError:
                return  # another socket replaced it
            strangers = endpoint.dropped_strangers
            # One moment for everything read: a datagram that arrived during the read counts as a little older.
            now = clock()
            read = sock.drain(receive)
            if endpoint.dropped_strangers - strangers < read:  # a flood of strangers' datagrams needs no answer either
                self.kick()

    async def _run_timers(self) -> None:
        while True:
            with self._timer:
                self._set_timer()
                await trio.sleep_forever()
            self._timer = trio.CancelScope()
            self._deadline = inf
            self._work(self.endpoint.on_timer)

    def kick(self) -> None:
        """Send everything that is due, and sleep until the next deadline. Call after every change."""
        self._work(self.endpoint.flush)

    def _work(self, step: Callable[[float], None]) -> None:
        # The stack calls applications' callbacks while it works, and those may request another kick.
        if self._is_busy:
            return
        self._is_busy = True
        try:
            step(self._clock())
        finally:
            self._is_busy = False
        self._set_timer()

    def _set_timer(self) -> None:
        wake = self.endpoint.next_wake()
        deadline = inf if wake is None else wake
        if deadline != self._deadline:
            self._deadline = self._timer.deadline = deadline

    # -- Sink -------------------------------------------------------------------------------------------------------
    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        """Send datagrams."""
        sock = self.sockets.get(socket.AF_INET6 if ":" in to[0] else socket.AF_INET)
        if sock is None:
            return False
        sent = sock.send(datagrams[0], to) if len(datagrams) == 1 else sock.send_many(datagrams, to)
        return sent is not Sent.REFUSED

    def udp_batch(self, batch: memoryview, segment: int, to: Address) -> bool:
        """Send a superbuffer."""
        sock = self.sockets.get(socket.AF_INET6 if ":" in to[0] else socket.AF_INET)
        return sock is not None and sock.send_batch(batch, segment, to) is not Sent.REFUSED

    def relay(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        """Send through a region."""
        return self.relays.send(region, to, packets)

    def stun(self, datagram: bytes) -> None:
        """Forward to the events."""
        self._events.on_stun(datagram)

    def ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        """Forward to the events."""
        self._events.on_ping_answered(answer, peer, region)

    def needs_endpoints(self) -> None:
        """Forward to the events."""
        self._events.on_needs_endpoints()

    def peer_alive(self, peer: PublicKey) -> None:
        """Forward to the events."""
        self._events.on_peer_alive(peer)

    def path_changed(self, peer: PublicKey, state: PathState, address: Address | None) -> None:
        """Forward to the events."""
        self._events.on_path_changed(peer, state, address)

    # -- RelayEvents ------------------------------------------------------------------------------------------------
    def relay_packets(self, region: int, source: bytes, packets: list[bytes]) -> None:
        """Process packets of a relay."""
        self.endpoint.receive_relay(region, source, packets, self._clock())

    def relay_flush(self) -> None:
        """Flush after the last packets."""
        self.kick()

    def relay_drained(self, region: int) -> None:
        """Resume sending."""
        self.endpoint.relay_drained(region)
        self.kick()

    def relay_peer_gone(self, region: int, key: bytes) -> None:
        """Forget the learnt route; packets sent there a moment ago are lost."""
        self.endpoint.relay_peer_gone(region, key, self._clock())
        self.kick()

    def relay_connected(self, region: int, connected: bool) -> None:
        """Note that a connection was opened or lost."""
        if connected:
            self.endpoint.relay_returned(region, self._clock())
            self.kick()
        else:
            self.endpoint.routes.forget_region(region)
            self.endpoint.relay_drained(region)
        self._events.on_relay_connected(region, connected)
