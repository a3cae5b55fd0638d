"""Output of the stack: the turns of connections, packets of other protocols, and timers.

Lives here: queues per destination, pausing, fragments, running timers.
Does not live here: what one connection sends (tcp/tcp_output.py), events of applications (notifier.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coder.mesh.core.stack import fragments
from coder.mesh.core.stack.connections import ConnectionTable
from coder.mesh.core.stack.deadlines import DeadlineHeap
from coder.mesh.core.stack.notifier import Notifier
from coder.mesh.core.stack.routes import Routes
from coder.mesh.core.stack.settings import TcpSettings
from coder.mesh.core.stack.tcp import handshake, tcp_output, tcp_timer
from coder.mesh.core.stack.tcp.connection import Host, TcpSocket
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire import ip, ip4
from coder.mesh.core.wire.batch import Batch, TxBuf

_MAX_ERRORS = 100
"""Ours: ICMP errors a second."""


class Transmitter(Host):
    """Output side of a host."""

    __slots__ = (
        "_errors_sent",
        "_out",
        "_paused",
        "_random",
        "_ready",
        "_spare",
        "_table",
        "deadlines",
        "notifier",
        "now",
    )

    def __init__(
        self,
        routes: Routes,
        settings: TcpSettings,
        table: ConnectionTable,
        notifier: Notifier,
        random: Callable[[int], bytes],
    ) -> None:
        super().__init__(routes, settings)
        self._table = table
        self._random = random
        self.notifier = notifier
        self.deadlines = DeadlineHeap()
        self.now = 0.0
        "Time of the last call that had one."
        self._ready: dict[TcpSocket, None] = {}
        self._paused: dict[bytes, dict[TcpSocket, None]] = {}
        "Peer -> connections with data that wait because the peer's outer queue is full."
        self._out: dict[bytes, list[bytes]] = {}
        self._errors_sent = (0.0, 0)
        self._spare: TxBuf | None = None

    # Output

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        """Fill the superbuffer with TCP data for one peer, or return None when there is none.

        Connections take turns.
        """
        ready = self._ready
        self.now = now
        while ready:
            # A dictionary is a queue without duplicates: a connection made ready twice has one turn.
            socket = next(iter(ready))
            del ready[socket]
            if self._paused and (held := self._paused.get(socket.remote)) is not None:
                held[socket] = None
                self._settle(socket, now)  # acknowledgements are small and keep the other direction flowing
                continue
            packet = tcp_output.small_segment(socket, now)
            if packet is not None:
                self._out.setdefault(socket.remote, []).append(packet)
                self.deadlines.schedule(socket)
                continue
            batch = tcp_output.emit(socket, txbuf, now)
            ready.pop(socket, None)
            if batch is None:
                self._settle(socket, now)
                continue
            ready[socket] = None  # behind the others: each connection gets a batch a turn
            # IPv4 packets are 20 bytes shorter outside, each by itself: they cannot be sealed in slots of equal size.
            if not (self.routes.has_ipv4 and ip4.is_ipv4(socket.remote)):
                return batch
            self._out.setdefault(batch.destination, []).extend(unpadded(txbuf, batch))
        return None

    def _settle(self, socket: TcpSocket, now: float) -> None:
        """Queue acknowledgements of a connection that has sent its data, and schedule its next deadline."""
        if socket.state is TcpState.CLOSED:
            return
        if socket.timers.syn_at <= now:
            syn = handshake.syn_packet(socket, now)
            if syn is not None:
                self.send_control(socket.remote, syn)
        # The SYN's acknowledgement is in the SYN-ACK, hence one or the other.
        elif socket.receiver.acks_pending:
            self._out.setdefault(socket.remote, []).extend(tcp_output.acknowledgements(socket, now))
        tcp_output.watch_window(socket, now)
        self.deadlines.schedule(socket)

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        """Return all other packets, per peer and in order: acknowledgements, SYN, RST, UDP, ICMP, TSMP, small segments.

        TCP data that `emit` did not fetch is returned here too, as single packets.
        """
        # Applications first: data they write in their hooks goes out with this output.
        if self.notifier.touched:
            self.notifier.flush()
        if self._ready:
            if self._spare is None:
                # 64 KiB that a node never needs whose driver calls `emit` first, as ours does.
                self._spare = TxBuf(self.routes.mtu)
            spare = self._spare
            while (batch := self.emit(spare, now)) is not None:
                self._out.setdefault(batch.destination, []).extend(unpadded(spare, batch))
        out = list(self._out.items())
        if self.routes.has_ipv4:
            out = [
                (to, [ip4.from_ipv6(p) if p[0] >> 4 == 6 else p for p in packets] if ip4.is_ipv4(to) else packets)
                for to, packets in out
            ]
        self._out.clear()
        return out

    @property
    def pending(self) -> bool:
        """Return whether `emit` or `take_output` may have something."""
        return bool(self._ready or self._out or self.notifier.touched)

    # Time

    def begin_round(self, now: float) -> None:
        """Start processing input or timers at this moment."""
        self.now = now
        if self.routes.narrowed:
            self.routes.forget_narrowings(now)

    def on_timer(self, now: float) -> None:
        """Run all expired timers."""
        while (socket := self.deadlines.pop_due(now)) is not None:
            tcp_timer.on_timer(socket, now)
            socket.timers.refresh()

    # Interface of connections

    def mark_ready(self, socket: TcpSocket) -> None:
        """Note that the connection may have something to send."""
        self._ready[socket] = None

    def note_deadline(self, socket: TcpSocket) -> None:
        """Note that the connection may have an earlier deadline than before."""
        self.deadlines.schedule(socket)

    def mark_touched(self, socket: TcpSocket) -> None:
        """Note that the application should check the connection."""
        self.notifier.touched[socket] = None

    def waits(self, socket: TcpSocket) -> None:
        """Note that the connection is in TIME_WAIT."""
        self._table.waits(socket)

    def forget(self, socket: TcpSocket) -> None:
        """Remove the CLOSED connection."""
        self._table.remove(socket)
        self._ready.pop(socket, None)
        self.deadlines.purge(len(self._table))

    def send_control(self, destination: bytes, packet: bytes) -> None:
        """Queue a packet for `take_output`."""
        self._out.setdefault(destination, []).append(packet)

    # Interface of other callers

    def send_packets(self, destination: bytes, packets: Iterable[bytes]) -> None:
        """Queue packets of other hosts for `take_output`: this host is their router."""
        self._out.setdefault(destination, []).extend(packets)

    def send_large(self, destination: bytes, packet: bytes) -> None:
        """Queue a packet, in fragments if it is larger than the tunnel's MTU."""
        mtu = self.routes.limit_to(destination)
        if len(packet) <= mtu:
            self.send_control(destination, packet)
            return
        if ip4.is_ipv4(destination):
            # Random identifications: a counter would reveal how much we send (RFC 8200 section 4.5 requires them unique
            # while fragments live, and random ones nearly are).
            pieces = ip4.split(ip4.from_ipv6(packet), mtu, int.from_bytes(self._random(2), "big"))
        else:
            pieces = fragments.split(packet, mtu, int.from_bytes(self._random(4), "big"))
        for piece in pieces:
            self.send_control(destination, piece)

    def may_send_error(self, now: float) -> bool:
        """Return whether another ICMP error may be sent now (RFC 4443 2.4 f: their rate is bounded)."""
        since, count = self._errors_sent
        if now - since >= 1.0:
            since, count = now, 0
        self._errors_sent = (since, count + 1)
        return count < _MAX_ERRORS

    # Back-pressure

    def is_paused(self, destination: bytes) -> bool:
        """Return whether output to the peer is paused: a router should drop its packets for this peer."""
        return destination in self._paused

    def pause(self, destination: bytes) -> None:
        """Emit no more data to the peer: its outer queue is full. Waiting here costs less than losing the data."""
        self._paused.setdefault(destination, {})

    def resume(self, destination: bytes) -> None:
        """Undo `pause`."""
        # In the order in which they stopped, so that no connection overtakes another.
        for socket in self._paused.pop(destination, ()):
            if socket.state is not TcpState.CLOSED:
                self.mark_ready(socket)

    def drop_output(self, destination: bytes) -> None:
        """Drop the queued output of a removed peer."""
        self._out.pop(destination, None)


def unpadded(txbuf: TxBuf, batch: Batch) -> list[bytes]:
    """Return the packets of a batch as separate bytes, without padding."""
    layout = txbuf.layout(batch.size)
    out = []
    for view in layout.plain[: batch.packets]:
        out.append(bytes(view[: ip.HEADER_SIZE + (view[4] << 8 | view[5])]))
    return out
