"""The user-space host: TCP, UDP, ICMP and TSMP behind one pair of doors, packets in and packets out.

Lives here: demultiplexing, port tables, held SYNs, per-peer switches, the order in which connections send, one heap of
timers. Does not live here: TCP itself (connection.py and its neighbours), tunnels, sockets of the machine.
Obeys: RFC 9293 (as a host), RFC 4443 section 4 (echo), derp-disco-stun.md sections 7 and 9.

IPv4 is translated at the doors (wire/ip4.py): inside, its addresses are mapped ones, 16 bytes like all.

How to drive it: `input_batch` with everything that arrived, then `emit` until None, then `take_output`, then sleep
until `next_wake`, then `on_timer`, and so on. Inner checksums are produced, never verified: the tunnel has
authenticated every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from heapq import heapify, heappop, heappush
from ipaddress import IPv4Address, IPv6Address

from coder.mesh.core.stack import arrival, demux, emission, fragments, handshake, recovery, timers
from coder.mesh.core.stack.connection import NEVER, TcpSocket
from coder.mesh.core.stack.datagrams import UdpDatagram, UdpSocket
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.listening import Listener, PendingConnection
from coder.mesh.core.stack.notices import Notice
from coder.mesh.core.stack.ports import choose_port
from coder.mesh.core.stack.settings import DEFAULT_BURST_LIMIT, TcpSettings
from coder.mesh.core.stack.states import State
from coder.mesh.core.wire import icmp, ip, ip4, tcp, tsmp, udp
from coder.mesh.core.wire.batch import Batch, TxBuf

__all__ = ["Listener", "Notice", "PendingConnection", "Stack", "StackError", "TcpSettings", "TcpSocket", "UdpSocket"]

_FIXED_HEADERS = ip.HEADER_SIZE + tcp.HEADER_SIZE
_LARGEST_BURST = 1 << 20
"""Ours: beyond it only the queue in the socket buffer grows, and with it every other flow's delay (measured: equal
throughput from 0.4 to 4 MB)."""

_LEAST_MTU = 256
"""Ours: below it a packet would be mostly headers."""
_NARROW_LIFE = 600.0
"""RFC 8201 section 4: seconds after which a larger size may be tried again."""
_MAX_NARROWED = 1024
_MAX_COMPLAINTS = 100
"""Ours: ICMP errors a second."""

Socket = TcpSocket | UdpSocket | Listener
TcpFallback = Callable[[PendingConnection], None]
UdpFallback = Callable[[UdpDatagram], None]


def _nothing(*_: object) -> None:
    """The hook nobody set."""


class Stack:
    """One host. `now` is monotonic seconds everywhere; addresses are 16 bytes, IPv4's also 4 where a verb takes one."""

    def __init__(
        self,
        addresses: Iterable[bytes | IPv6Address | IPv4Address],
        random: Callable[[int], bytes],
        mtu: int = ip.MIN_MTU,
        settings: TcpSettings | None = None,
    ) -> None:
        """`random` yields unpredictable bytes (sequence numbers, ports); `mtu` is the largest inner packet, bytes."""
        self.addresses = [
            ip4.address16(address if isinstance(address, bytes) else address.packed) for address in addresses
        ]
        self._has_ipv4 = any(map(ip4.is_ipv4, self.addresses))
        self.mtu = mtu
        self.settings = settings or TcpSettings()
        self.random = random
        self.on_event: Callable[[Socket], None] = _nothing
        "Something about a socket changed: look at its flags. Only sockets without a hook of their own."
        self.on_notice: Callable[[Notice], None] = _nothing
        self.on_wake: Callable[[], None] = _nothing
        "There is something to emit, because of a verb called between two rounds."
        self.now = 0.0
        "The moment of the last call that knew one."
        self._burst_limit = DEFAULT_BURST_LIMIT
        self.sockets: dict[bytes, TcpSocket] = {}
        self.listeners: dict[int, Listener] = {}
        self.held: dict[bytes, PendingConnection] = {}
        self.udp_sockets: dict[int, UdpSocket] = {}
        self.tcp_fallback: TcpFallback | None = None
        self.udp_fallback: UdpFallback | None = None
        self.assembler = fragments.Assembler()
        self._ready: dict[TcpSocket, None] = {}
        self._paused: dict[bytes, dict[TcpSocket, None]] = {}
        "By peer: connections that had something to send when their peer's queue outside was full."
        self._touched: dict[Socket, None] = {}
        self._out: dict[bytes, list[bytes]] = {}
        self._timers: list[tuple[float, int, TcpSocket]] = []
        self._timer_count = 0
        self._busy = False
        self._awake = False
        self._mtu_to: dict[bytes, int] = {}
        self._narrowed: dict[bytes, tuple[int, float]] = {}
        "What a router beyond the peer said about its link, and when."
        self._complaints = (0.0, 0)
        self._unchecked: set[bytes] = set()
        self._spare: TxBuf | None = None

    # Data path

    def input_batch(self, packets: list[bytes], now: float) -> None:
        """Take inner packets (padding allowed) in the order of arrival. Foreign bytes never raise."""
        self.now = now
        self._busy = True
        if self._has_ipv4:
            packets = demux.translated(packets)
        sockets = self.sockets
        index = 0
        count = len(packets)
        while index < count:
            packet = packets[index]
            socket = sockets.get(packet[8:44])
            if socket is not None:
                after = arrival.on_run(socket, packets, index, now)
                if after > index:
                    index = after
                    continue
            demux.on_packet(self, packet, socket, now)
            index += 1
        self._flush_events()

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        """Fill the superbuffer with TCP data for one peer; None when there is no more. Connections take turns."""
        ready = self._ready
        self.now = now
        while ready:
            socket = next(iter(ready))
            held = self._paused.get(socket.remote)
            if held is not None:
                del ready[socket]
                held[socket] = None
                self._settle(socket, now)  # acknowledgements are small and keep the other direction going
                continue
            del ready[socket]
            packet = emission.lone(socket, now)
            if packet is not None:
                self._out.setdefault(socket.remote, []).append(packet)
                self._schedule(socket)
                continue
            is_ipv4 = self._has_ipv4 and ip4.is_ipv4(socket.remote)
            batch = emission.emit(socket, txbuf, now)
            ready.pop(socket, None)
            if batch is not None:
                ready[socket] = None
                if not is_ipv4:
                    return batch
                self._out.setdefault(batch.destination, []).extend(demux.unpadded(txbuf, batch))
                continue
            self._settle(socket, now)
        return None

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        """Everything else, per peer and in order: acknowledgements, SYN, RST, UDP, ICMP, TSMP, lone small segments.

        TCP data that was not fetched by `emit` comes out here too, as single packets.
        """
        if self._touched:
            self._flush_events()
        if self._ready:
            if self._spare is None:
                self._spare = TxBuf(self.mtu)
            spare = self._spare
            while (batch := self.emit(spare, now)) is not None:
                self._out.setdefault(batch.destination, []).extend(demux.unpadded(spare, batch))
        if not self.pending:
            self._awake = False
            return []
        out = list(self._out.items())
        if self._has_ipv4:
            out = [
                (to, [ip4.from_ipv6(p) if p[0] >> 4 == 6 else p for p in packets] if ip4.is_ipv4(to) else packets)
                for to, packets in out
            ]
        self._out.clear()
        self._awake = False
        if self.pending:  # a connection gave up while it was asked
            self._wake()
        return out

    @property
    def pending(self) -> bool:
        """Whether `emit` or `take_output` may have something."""
        return bool(self._ready or self._out or self._touched)

    @property
    def idle(self) -> bool:
        """Whether neither `emit` nor `take_output` has anything: they need not be called."""
        if self._ready or self._out or self._touched:
            return False
        self._awake = False
        return True

    def next_wake(self) -> float | None:
        """When `on_timer` wants to be called; valid after `emit` and `take_output`. May be early, never late."""
        at = self._timers[0][0] if self._timers else NEVER
        if self.held:
            at = min(at, next(iter(self.held.values())).held_at + self.settings.hold_syn)
        return None if at == NEVER else at

    def on_timer(self, now: float) -> None:
        """Run what is due."""
        self.now = now
        self._busy = True
        heap = self._timers
        while heap and heap[0][0] <= now:
            socket = heappop(heap)[2]
            socket.scheduled.pop()
            if socket.deadline() <= now:
                timers.on_timer(socket, now)
            else:
                self._schedule(socket)
        for key, pending in list(self.held.items()):
            # Held SYNs come in order of age; the first young one ends the search.
            if now - pending.held_at < self.settings.hold_syn:
                break
            pending.settled = True
            del self.held[key]
        self._flush_events()

    def _settle(self, socket: TcpSocket, now: float) -> None:
        """A connection has sent the data it may: what else does it owe, and when does it want to be woken?"""
        if socket.state is State.CLOSED:
            return
        if socket.syn_at <= now:
            syn = handshake.syn_packet(socket, now)
            if syn is not None:
                self.send_control(socket.remote, syn)
        elif socket.acks_owed:
            self._out.setdefault(socket.remote, []).extend(emission.acknowledgements(socket, now))
        timers.watch_window(socket, now)
        self._schedule(socket)

    def note_deadline(self, socket: TcpSocket) -> None:
        """The connection may have to be woken earlier than before."""
        self._schedule(socket)

    def _schedule(self, socket: TcpSocket) -> None:
        at = socket.deadline()
        scheduled = socket.scheduled
        if at < (scheduled[-1] if scheduled else NEVER):
            # Later entries of the same connection stay in the heap and are looked at when they surface.
            scheduled.append(at)
            self._timer_count += 1
            heappush(self._timers, (at, self._timer_count, socket))

    def _flush_events(self) -> None:
        self._busy = True
        touched = self._touched
        while touched:
            socket = next(iter(touched))
            del touched[socket]
            if isinstance(socket, TcpSocket):
                if socket.accepted_by is not None:
                    self._queue_accepted(socket)
                if not socket.adopted:
                    continue
            hook = socket.on_event
            if hook is None:
                self.on_event(socket)
            else:
                hook(socket)  # type: ignore[arg-type]
        self._busy = False

    def _queue_accepted(self, socket: TcpSocket) -> None:
        """Hand a finished handshake to its listener, or drop a failed one."""
        listener = socket.accepted_by
        if not isinstance(listener, Listener) or socket.state is State.SYN_RECEIVED:
            return
        socket.accepted_by = None
        listener.opening -= 1
        if listener.closed:
            socket.abort()
        elif socket.state is not State.CLOSED:
            listener.queue.append(socket)
            self._touched[listener] = None

    # What connections ask of their host

    def make_ready(self, socket: TcpSocket) -> None:
        """The connection may have something to send."""
        self._ready[socket] = None
        if not (self._busy or self._awake):
            self._wake()

    def make_touched(self, socket: Socket) -> None:
        """Its application should look at it."""
        self._touched[socket] = None
        if not (self._busy or self._awake):
            self._wake()

    def send_control(self, destination: bytes, packet: bytes) -> None:
        """Queue a packet for `take_output`."""
        self._out.setdefault(destination, []).append(packet)
        if not (self._busy or self._awake):
            self._wake()

    def send_packets(self, destination: bytes, packets: Iterable[bytes]) -> None:
        """Queue ready-made packets of others for `take_output`: we are their router."""
        self._out.setdefault(destination, []).extend(packets)
        if not (self._busy or self._awake):
            self._wake()

    def is_paused(self, destination: bytes) -> bool:
        """Whether `pause` is on: what a router gets for this peer it had better drop."""
        return destination in self._paused

    def send_large(self, destination: bytes, packet: bytes) -> None:
        """Queue a packet, in fragments if it is larger than the tunnel's MTU."""
        mtu = self._limit_to(destination)
        if len(packet) <= mtu:
            self.send_control(destination, packet)
            return
        if ip4.is_ipv4(destination):
            pieces = ip4.split(ip4.from_ipv6(packet), mtu, int.from_bytes(self.random(2), "big"))
        else:
            pieces = fragments.split(packet, mtu, int.from_bytes(self.random(4), "big"))
        for piece in pieces:
            self.send_control(destination, piece)

    def _wake(self) -> None:
        self._awake = True
        self.on_wake()

    def forget(self, socket: TcpSocket) -> None:
        """The connection is CLOSED."""
        if self.sockets.get(socket.key) is socket:
            del self.sockets[socket.key]
        self._ready.pop(socket, None)
        if len(self._timers) > 64 + 4 * len(self.sockets):
            # A keepalive three days away must not keep a dead connection in memory.
            self._timers[:] = [entry for entry in self._timers if entry[2].state is not State.CLOSED]
            heapify(self._timers)

    def segment_limit(self, socket: TcpSocket) -> int:
        """Bytes behind the fixed TCP header that path and peer take."""
        special = self._mtu_to.get(socket.remote, 0)
        if self.mtu < special <= socket.peer_packet and socket.remote not in self._narrowed:
            return special - _FIXED_HEADERS
        return min(min(self._limit_to(socket.remote), self.mtu) - _FIXED_HEADERS, socket.peer_mss)

    def narrow(self, destination: bytes, mtu: int, now: float) -> bool:
        """A router takes packets of at most `mtu` bytes (RFC 8201): whether that is news. Believed for ten minutes."""
        self.now = now
        for address, (_, since) in list(self._narrowed.items()):
            if now - since >= _NARROW_LIFE:
                del self._narrowed[address]
        if not _LEAST_MTU <= mtu < self._limit_to(destination) or len(self._narrowed) >= _MAX_NARROWED:
            return False
        self._narrowed[destination] = (mtu, now)
        for socket in self.sockets.values():
            if socket.remote == destination:
                emission.retune(socket, self.segment_limit(socket))
        return True

    def _limit_to(self, destination: bytes) -> int:
        """The largest inner packet for a destination, whatever its kind."""
        limit = self._mtu_to.get(destination, self.mtu)
        if self._narrowed and destination in self._narrowed:
            mtu, since = self._narrowed[destination]
            if self.now - since < _NARROW_LIFE:
                return min(limit, mtu)
        return limit

    def may_complain(self, now: float) -> bool:
        """Whether one more ICMP error may be sent now (RFC 4443 2.4 f: their rate is bounded)."""
        since, count = self._complaints
        if now - since >= 1.0:
            since, count = now, 0
        self._complaints = (since, count + 1)
        return count < _MAX_COMPLAINTS

    def own_limit(self, destination: bytes) -> int:
        """The MSS to announce: larger packets than usual are announced by NEIGHBOUR_PACKET instead.

        Smaller ones not at all: the path may widen, an MSS is for good, and the peer measures its own direction.
        """
        return self.mtu - _FIXED_HEADERS

    def without_checksums(self, destination: bytes) -> bool:
        """Whether `skip_checksums_to` is on."""
        return destination in self._unchecked

    # Verbs for TCP

    @property
    def connections(self) -> Collection[TcpSocket]:
        """All that are not CLOSED."""
        return self.sockets.values()

    def tcp_connect(
        self, destination: bytes, port: int, now: float, *, source: bytes | None = None, source_port: int = 0
    ) -> TcpSocket:
        """Begin a connection; look at `connected` and `error` when `on_event` fires. StackError("no_ports")."""
        destination = ip4.address16(destination)
        local = source or self._own_address(destination)
        if not source_port:
            source_port = choose_port(
                self.random, lambda free: self._key(destination, local, port, free) not in self.sockets
            )
        socket = TcpSocket(self, local, source_port, destination, port, self.random(8))
        if socket.key in self.sockets:
            raise StackError("port_in_use")
        self.now = now
        self.sockets[socket.key] = socket
        handshake.begin_connect(socket, now)
        return socket

    def _own_address(self, destination: bytes) -> bytes:
        """Where packets to the destination come from: our first address of its family."""
        if not self._has_ipv4:
            return self.addresses[0]
        family = ip4.is_ipv4(destination)
        return next((a for a in self.addresses if ip4.is_ipv4(a) == family), self.addresses[0])

    @staticmethod
    def _key(remote: bytes, local: bytes, remote_port: int, local_port: int) -> bytes:
        return remote + local + remote_port.to_bytes(2, "big") + local_port.to_bytes(2, "big")

    def tcp_listen(self, port: int, backlog: int = 128) -> Listener:
        """Accept connections to `port` on all own addresses. StackError("port_in_use")."""
        if port in self.listeners:
            raise StackError("port_in_use")
        listener = self.listeners[port] = Listener(port, backlog, self._unlisten)
        return listener

    def _unlisten(self, listener: Listener) -> None:
        if self.listeners.get(listener.port) is listener:
            del self.listeners[listener.port]

    def set_tcp_fallback(self, decide: TcpFallback | None) -> None:
        """Called with the first SYN of every connection to a port nobody listens on; without it they are reset."""
        self.tcp_fallback = decide

    # Verbs for UDP, ICMP and TSMP

    def udp_bind(self, port: int = 0, address: bytes | None = None) -> UdpSocket:
        """Receive datagrams to `port` (0: any free one) on all own addresses. StackError("port_in_use")."""
        if not port:
            port = choose_port(self.random, lambda free: free not in self.udp_sockets)
        if port in self.udp_sockets:
            raise StackError("port_in_use")
        socket = UdpSocket(address or self.addresses[0], port, self.udp_send, self._unbind)
        self.udp_sockets[port] = socket
        return socket

    def _unbind(self, socket: UdpSocket) -> None:
        if self.udp_sockets.get(socket.port) is socket:
            del self.udp_sockets[socket.port]

    def udp_send(self, source: bytes, source_port: int, destination: bytes, port: int, payload: bytes) -> None:
        """Send a datagram without a socket (answers of a fallback's flow)."""
        destination = ip4.address16(destination)
        if self._has_ipv4 and ip4.is_ipv4(source) != ip4.is_ipv4(destination):
            source = self._own_address(destination)  # one socket serves both families
        datagram = udp.Datagram(source_port, port, payload)
        self.send_large(destination, datagram.encode(source, destination, destination not in self._unchecked))

    def set_udp_fallback(self, take: UdpFallback | None) -> None:
        """Called with datagrams to ports nobody bound; without it they are answered with port unreachable."""
        self.udp_fallback = take

    def tsmp_ping(self, destination: bytes, token: bytes, source: bytes | None = None) -> None:
        """Ask whether the peer is reachable; the answer is a TsmpPong notice with the same 8-byte token."""
        own = source or self._own_address(destination)
        self.send_control(destination, tsmp.Ping(token).encode(own, destination))

    def icmp_echo(
        self, destination: bytes, identifier: int, sequence: int, payload: bytes = b"", source: bytes | None = None
    ) -> None:
        """Send an echo request; the answer is an EchoReply notice."""
        destination = ip4.address16(destination)
        message = icmp.Message(icmp.ECHO_REQUEST, 0, identifier << 16 | sequence, payload)
        self.send_large(destination, message.encode(source or self._own_address(destination), destination))

    # Verbs for peers and limits

    @property
    def burst_limit(self) -> int:
        """Bytes that survive in the outer socket's buffer when nobody reads for a moment."""
        return self._burst_limit

    @burst_limit.setter
    def burst_limit(self, size: int) -> None:
        """Bounds what is in flight, and what the peer may have in flight, on paths faster than 2 ms."""
        self._burst_limit = min(max(size, 2 * self.mtu), _LARGEST_BURST)

    def skip_checksums_to(self, destination: bytes, skip: bool = True) -> None:
        """Leave inner checksums out for this peer. TCP between nodes of our kind agrees on it without being told."""
        if skip:
            self._unchecked.add(destination)
        else:
            self._unchecked.discard(destination)
        for socket in self.sockets.values():
            if socket.remote == destination and socket.connected:
                socket.skip_checksums = skip or (self.settings.skip_checksums and bool(socket.peer_packet))
                emission.retune(socket, self.segment_limit(socket))

    def set_mtu_to(self, destination: bytes, mtu: int | None) -> None:
        """The largest inner packet for one peer, None: default. More than the stack's own needs a peer of our kind.

        Less than IPv6 promises is taken as well: TCP sends smaller segments, everything else is fragmented.
        """
        if mtu is None:
            self._mtu_to.pop(destination, None)
        else:
            self._mtu_to[destination] = max(mtu, _LEAST_MTU)
        for socket in self.sockets.values():
            if socket.remote == destination:
                emission.retune(socket, self.segment_limit(socket))

    def pause(self, destination: bytes) -> None:
        """Emit no more data to the peer: the queue it would join is full; waiting here costs less than losing it."""
        self._paused.setdefault(destination, {})

    def resume(self, destination: bytes) -> None:
        """Undo `pause`."""
        for socket in self._paused.pop(destination, ()):
            if socket.state is not State.CLOSED:
                self.make_ready(socket)

    def path_changed(self, destination: bytes, now: float) -> None:
        """Packets to the peer take another way: what a dead path swallowed is sent again at once."""
        self.now = now
        for socket in list(self.sockets.values()):
            if socket.remote != destination:
                continue
            socket.rtt.forget_minimum()
            if socket.syn_at > now and socket.state in (State.SYN_SENT, State.SYN_RECEIVED):
                socket.syn_at = now
            elif socket.snd_nxt > socket.snd_una and socket.retries:
                recovery.on_timeout(socket, now)
                socket.retries = 0
                socket.rto_at = now + socket.rtt.rto
            elif socket.snd_nxt > socket.snd_una and socket.sack_ok:
                recovery.on_probe_timer(socket, now)
            if socket.persist_at != NEVER:
                socket.persist_at = now
            self.make_ready(socket)

    def reset_peer(self, destination: bytes, now: float) -> None:
        """The peer is gone: its connections die without a packet."""
        self.now = now
        for socket in list(self.sockets.values()):
            if socket.remote == destination:
                socket.die(StackError("unreachable"))
        for key, pending in list(self.held.items()):
            if pending.source == destination:
                pending.settled = True
                del self.held[key]
        self._out.pop(destination, None)

    def close(self, now: float) -> None:
        """Reset every connection; the packets come out of `take_output`."""
        self.now = now
        for listener in list(self.listeners.values()):
            listener.close()
        for socket in list(self.sockets.values()):
            socket.abort()
        self.held.clear()

    def add_address(self, address: bytes) -> None:
        """Answer for one more address."""
        address = ip4.address16(address)
        if address not in self.addresses:
            self.addresses.append(address)
            self._has_ipv4 = self._has_ipv4 or ip4.is_ipv4(address)

    def remove_address(self, address: bytes) -> None:
        """Answer no more; its connections are reset."""
        if address in self.addresses:
            self.addresses.remove(address)
        for socket in list(self.sockets.values()):
            if socket.local == address:
                socket.abort()
