"""User-space host: TCP, UDP, ICMP and TSMP. Packets go in, packets come out.

Lives here: the verbs of applications and of the endpoint. State is kept in three objects: input (demux.py), output
(transmit.py) and configuration (routes.py).
Does not live here: TCP itself (tcp/), tunnels, sockets of the operating system.
Obeys: RFC 9293 (as a host), RFC 4443 section 4 (echo), docs/protocol/tsmp.md.

IPv4 is translated at the edge (wire/ip4.py): inside, its addresses are mapped ones, 16 bytes like all.

The driver's loop: `input_batch` with everything that arrived, then `emit` until None, then `take_output`, then sleep
until `next_wake`, then `on_timer`, and so on. Inner checksums are produced, never verified: the tunnel has
authenticated every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address

from coder.mesh.core.stack.connections import ConnectionTable
from coder.mesh.core.stack.datagrams import UdpSocket
from coder.mesh.core.stack.demux import Demux, TcpFallback, UdpFallback
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.events import StackEvent
from coder.mesh.core.stack.notifier import Notifier
from coder.mesh.core.stack.ports import choose_port
from coder.mesh.core.stack.routes import Routes
from coder.mesh.core.stack.settings import TcpSettings
from coder.mesh.core.stack.tcp import handshake, tcp_timer
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.listening import ListeningSocket, PendingConnection
from coder.mesh.core.stack.tcp.timers import NEVER
from coder.mesh.core.stack.transmit import Transmitter
from coder.mesh.core.wire import icmp, ip, ip4, tsmp, udp
from coder.mesh.core.wire.batch import Batch, TxBuf

__all__ = [
    "ListeningSocket",
    "PendingConnection",
    "Stack",
    "StackError",
    "StackEvent",
    "TcpSettings",
    "TcpSocket",
    "UdpSocket",
]


class Stack:
    """A host. `now` is monotonic seconds everywhere; addresses are 16 bytes, IPv4's also 4 where a verb accepts one."""

    def __init__(
        self,
        addresses: Iterable[bytes | IPv6Address | IPv4Address],
        random: Callable[[int], bytes],
        mtu: int = ip.MIN_MTU,
        settings: TcpSettings | None = None,
    ) -> None:
        """`random` yields unpredictable bytes (sequence numbers, ports); `mtu` is the largest inner packet, bytes."""
        packed = [address if isinstance(address, bytes) else address.packed for address in addresses]
        self._random = random
        self._routes = Routes(packed, mtu)
        self._table = ConnectionTable((settings or TcpSettings()).max_connections)
        self._notifier = Notifier()
        self._transmit = Transmitter(self._routes, settings or TcpSettings(), self._table, self._notifier, random)
        self._demux = Demux(self._routes, self._table, self._transmit, random)

    # Data path

    def input_batch(self, packets: list[bytes], now: float) -> None:
        """Process inner packets (padding allowed) in the order of arrival. Malformed bytes never raise."""
        self._demux.input_batch(packets, now)

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        """Fill the superbuffer with TCP data for one peer, or return None when there is none.

        Connections take turns.
        """
        return self._transmit.emit(txbuf, now)

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        """Return all other packets, per peer and in order; see `Transmitter.take_output`."""
        return self._transmit.take_output(now)

    @property
    def pending(self) -> bool:
        """Return whether `emit` or `take_output` may have something."""
        return self._transmit.pending

    @property
    def idle(self) -> bool:
        """Return whether neither `emit` nor `take_output` has anything: they need not be called."""
        return not self._transmit.pending

    def next_wake(self) -> float | None:
        """Return when `on_timer` is due; valid after `emit` and `take_output`. May be early, never late."""
        at = self._transmit.deadlines.next()
        if self._demux.holds:
            expiry = self._demux.next_wake()
            if expiry is not None and expiry < at:
                at = expiry
        return None if at == NEVER else at

    def on_timer(self, now: float) -> None:
        """Run all expired timers."""
        self._transmit.begin_round(now)
        self._transmit.on_timer(now)
        if self._demux.holds:
            self._demux.on_timer(now)
        self._notifier.flush()

    # Tables

    @property
    def addresses(self) -> list[bytes]:
        """Addresses of this host, 16 bytes each."""
        return self._routes.addresses

    @property
    def settings(self) -> TcpSettings:
        """Limits and timers of TCP."""
        return self._transmit.settings

    @property
    def connections(self) -> list[TcpSocket]:
        """All connections that are not CLOSED."""
        return self._table.all()

    @property
    def listeners(self) -> dict[int, ListeningSocket]:
        """Listeners by port."""
        return self._demux.listeners

    @property
    def deadlines(self) -> int:
        """Entries in the heap of timers."""
        return len(self._transmit.deadlines)

    # Verbs for TCP

    def tcp_connect(
        self, destination: bytes, port: int, now: float, *, source: bytes | None = None, source_port: int = 0
    ) -> TcpSocket:
        """Open a connection; check `connected` and `error` when `on_event` fires. Raises StackError("no_ports")."""
        destination = ip4.address16(destination)
        local = source or self._routes.source_for(destination)
        taken = self._table.by_key
        if not source_port:
            # A port may serve many destinations at a time: only the four-tuple has to be unique (RFC 6056
            # section 3.3.1).
            source_port = choose_port(
                self._random, lambda free: self._table.key(destination, local, port, free) not in taken
            )
        socket = TcpSocket(self._transmit, local, source_port, destination, port, self._random(8))
        if socket.key in taken:
            raise StackError("port_in_use")
        self._table.add(socket)
        handshake.begin_connect(socket, now)
        return socket

    def tcp_listen(self, port: int, backlog: int = 128) -> ListeningSocket:
        """Accept connections to `port` on all own addresses. Raises StackError("port_in_use")."""
        if port in self._demux.listeners:
            raise StackError("port_in_use")
        listener = self._demux.listeners[port] = ListeningSocket(port, backlog, self._unlisten)
        return listener

    def _unlisten(self, listener: ListeningSocket) -> None:
        # A second close of an earlier listener must not remove a later listener of the same port.
        if self._demux.listeners.get(listener.port) is listener:
            del self._demux.listeners[listener.port]

    def set_tcp_fallback(self, decide: TcpFallback | None) -> None:
        """Set the function that gets the first SYN of each connection to a port without a listener; default: reset."""
        self._demux.set_tcp_fallback(decide)

    # Verbs for UDP, ICMP and TSMP

    def udp_bind(self, port: int = 0, address: bytes | None = None) -> UdpSocket:
        """Receive datagrams to `port` (0: any free port) on all own addresses. Raises StackError("port_in_use")."""
        bound = self._demux.udp_sockets
        if not port:
            port = choose_port(self._random, lambda free: free not in bound)
        if port in bound:
            raise StackError("port_in_use")
        socket = UdpSocket(address or self._routes.addresses[0], port, self.udp_send, self._unbind)
        bound[port] = socket
        return socket

    def _unbind(self, socket: UdpSocket) -> None:
        if self._demux.udp_sockets.get(socket.port) is socket:
            del self._demux.udp_sockets[socket.port]

    def udp_send(self, source: bytes, source_port: int, destination: bytes, port: int, payload: bytes) -> None:
        """Send a datagram without a socket (answers in a fallback's flow)."""
        destination = ip4.address16(destination)
        if self._routes.has_ipv4 and ip4.is_ipv4(source) != ip4.is_ipv4(destination):
            source = self._routes.source_for(destination)  # one socket serves both families
        # A datagram too long for its header is lost, like one that no path carries.
        if len(payload) > udp.MAX_PAYLOAD - (ip4.HEADER_SIZE if ip4.is_ipv4(destination) else 0):
            return
        packet = udp.Datagram(source_port, port, payload).encode(source, destination)
        self._transmit.send_large(destination, packet)

    def set_udp_fallback(self, take: UdpFallback | None) -> None:
        """Set the function that gets datagrams to unbound ports; default: port unreachable."""
        self._demux.set_udp_fallback(take)

    def set_event_hook(self, hook: Callable[[StackEvent], None]) -> None:
        """Set the function that gets events of peers without a socket: answers to pings, errors of routers."""
        self._demux.set_event_hook(hook)

    def tsmp_ping(self, destination: bytes, token: bytes, source: bytes | None = None) -> None:
        """Ping the peer; the answer is a TsmpPong event with the same 8-byte token."""
        sender = source or self._routes.source_for(destination)
        self._transmit.send_control(destination, tsmp.TsmpPing(token).encode(sender, destination))

    def icmp_echo(
        self, destination: bytes, identifier: int, sequence: int, payload: bytes = b"", source: bytes | None = None
    ) -> None:
        """Send an echo request; the answer is an EchoReply event."""
        destination = ip4.address16(destination)
        message = icmp.Message(icmp.ECHO_REQUEST, 0, identifier << 16 | sequence, payload)
        sender = source or self._routes.source_for(destination)
        self._transmit.send_large(destination, message.encode(sender, destination))

    def send_packets(self, destination: bytes, packets: Iterable[bytes]) -> None:
        """Queue packets of other hosts for `take_output`: this host is their router."""
        self._transmit.send_packets(destination, packets)

    # Verbs for peers and limits

    @property
    def burst_limit(self) -> int:
        """Bytes that survive in the outer socket's buffer when the reader pauses for a moment."""
        return self._routes.burst.size

    @burst_limit.setter
    def burst_limit(self, size: int) -> None:
        """Set the bound for bytes in flight, in both directions, on paths faster than 2 ms."""
        self._routes.burst.set(size, 2 * self._routes.mtu)

    def set_mtu_to(self, destination: bytes, mtu: int | None) -> None:
        """Set the largest inner packet for a peer, None: default.

        Sizes above the stack's own need a peer of the same stack. Sizes below IPv6's minimum are accepted as well: TCP
        sends smaller segments, everything else is fragmented.
        """
        self._routes.set_mtu(destination, mtu)
        for socket in self._table.to(destination):
            socket.update_mss()

    def is_paused(self, destination: bytes) -> bool:
        """Return whether output to the peer is paused: a router should drop its packets for this peer."""
        return self._transmit.is_paused(destination)

    def pause(self, destination: bytes) -> None:
        """Emit no more data to the peer: its outer queue is full. Waiting here costs less than losing the data."""
        self._transmit.pause(destination)

    def resume(self, destination: bytes) -> None:
        """Undo `pause`."""
        self._transmit.resume(destination)

    def path_changed(self, destination: bytes, now: float) -> None:
        """Handle a new path to the peer: retransmit immediately what the dead path lost."""
        for socket in self._table.to(destination):
            tcp_timer.on_path_change(socket, now)

    def reset_peer(self, destination: bytes, now: float) -> None:
        """Close the connections of a removed peer without sending a packet."""
        for socket in self._table.to(destination):
            socket.fail(StackError("unreachable"))
        # A held SYN of the peer would otherwise become a connection to a removed peer.
        self._demux.forget_held(destination)
        self._routes.forget(destination)
        self._transmit.drop_output(destination)

    def close(self, now: float) -> None:
        """Reset every connection; the packets come out of `take_output`."""
        for listener in list(self._demux.listeners.values()):
            listener.close()
        for socket in self._table.all():
            socket.abort()
        self._demux.forget_all_held()

    def add_address(self, address: bytes) -> None:
        """Add an own address."""
        self._routes.add(address)
