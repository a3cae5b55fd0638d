"""Input of the stack: dispatches each packet to its connection, socket or automatic answer.

Lives here: protocols, ports, listeners, held SYNs, automatic answers.
Does not live here: what a segment does to its connection (tcp/tcp_input.py), output (transmit.py).
Obeys: RFC 9293 section 3.10.7.1 and .2 (segments without a connection), RFC 4443 sections 3 and 4 (errors, echo),
docs/protocol/tsmp.md.
"""

from __future__ import annotations

from collections.abc import Callable

from coder.mesh.core.errors import WireError
from coder.mesh.core.stack import fragments
from coder.mesh.core.stack.connections import ConnectionTable
from coder.mesh.core.stack.datagrams import UdpDatagram, UdpSocket
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.events import EchoReply, StackEvent, TooBig, TsmpAnswer, Unreachable
from coder.mesh.core.stack.routes import Routes
from coder.mesh.core.stack.tcp import handshake, tcp_input
from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.listening import ListeningSocket, PendingConnection
from coder.mesh.core.stack.tcp.sequence import HALF, MASK
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.stack.transmit import Transmitter
from coder.mesh.core.wire import icmp, ip, ip4, tcp, tsmp, udp
from coder.mesh.core.wire.tcp import Segment
from coder.mesh.fair_shares import FairShares

TcpFallback = Callable[[PendingConnection], None]
UdpFallback = Callable[[UdpDatagram], None]

_PORT_AT = ip.HEADER_SIZE + 2
# An error quotes at least the first eight bytes behind the header (RFC 792 requires no more): ports and TCP's sequence
# number.
_QUOTED_SEQUENCE_END = ip.HEADER_SIZE + 8
_HARD_CODES = (icmp.CODE_PROHIBITED, icmp.CODE_PORT_UNREACHABLE)


def _ignore(_: StackEvent) -> None:
    """Default hook; does nothing."""


class Demux:
    """Input side of a host."""

    __slots__ = (
        "_assembler",
        "_held_shares",
        "_on_stack_event",
        "_random",
        "_routes",
        "_table",
        "_tcp_fallback",
        "_transmit",
        "_udp_fallback",
        "held",
        "listeners",
        "udp_sockets",
    )

    def __init__(
        self, routes: Routes, table: ConnectionTable, transmit: Transmitter, random: Callable[[int], bytes]
    ) -> None:
        self._routes = routes
        self._table = table
        self._transmit = transmit
        self._random = random
        self._on_stack_event: Callable[[StackEvent], None] = _ignore
        self.listeners: dict[int, ListeningSocket] = {}
        self.udp_sockets: dict[int, UdpSocket] = {}
        self.held: dict[bytes, PendingConnection] = {}
        "SYNs for ports without a listener, in the order of arrival, until the fallback decides."
        self._held_shares: FairShares[bytes] = FairShares(transmit.settings.max_held_syns)
        self._tcp_fallback: TcpFallback | None = None
        self._udp_fallback: UdpFallback | None = None
        self._assembler = fragments.Assembler()

    def set_tcp_fallback(self, decide: TcpFallback | None) -> None:
        """Set the function that decides about SYNs for ports without a listener."""
        self._tcp_fallback = decide

    def set_udp_fallback(self, take: UdpFallback | None) -> None:
        """Set the function that receives datagrams to unbound ports."""
        self._udp_fallback = take

    def set_event_hook(self, hook: Callable[[StackEvent], None]) -> None:
        """Set the function that receives events without a socket."""
        self._on_stack_event = hook

    def input_batch(self, packets: list[bytes], now: float) -> None:
        """Process inner packets (padding allowed) in the order of arrival. Malformed bytes never raise."""
        transmit = self._transmit
        transmit.begin_round(now)
        if self._routes.has_ipv4:
            packets = translated(packets)
        by_key = self._table.by_key
        index = 0
        count = len(packets)
        while index < count:
            packet = packets[index]
            # Addresses and ports as laid out in a packet without extension headers: one slice, one lookup, no parsing.
            socket = by_key.get(packet[8:44])
            if socket is not None:
                after = tcp_input.on_run(socket, packets, index, now)
                if after > index:
                    index = after
                    continue
            self._on_packet(packet, socket, now)
            index += 1
        transmit.notifier.flush()

    def _on_packet(self, packet: bytes, socket: TcpSocket | None, now: float) -> None:
        """Process an inner packet outside of a run.

        `socket`: the connection whose key its first bytes match, or None.
        """
        try:
            # The bytes may match by accident in a packet of another protocol: the protocol is checked only now.
            if socket is not None and packet[6] == ip.PROTOCOL_TCP and packet[0] >> 4 == 6:
                end = ip.HEADER_SIZE + (packet[4] << 8 | packet[5])
                if end <= len(packet):
                    self._to_connection(socket, packet, tcp.parse_untrusted(packet, ip.HEADER_SIZE, end), now)
                return
            parsed = ip.parse_untrusted(packet)
            # A host forwards nothing. A node that is a gateway took packets for other hosts before (`Endpoint.route`).
            if parsed.destination not in self._routes.addresses:
                return
            if parsed.protocol == fragments.PROTOCOL:
                whole = self._assembler.add(parsed, now)
                # A fragment is missing, or the fragments are malformed: the assembler raises in the second case.
                if whole is None:
                    return
                parsed, packet = whole, whole.encode()
                socket = self._table.by_key.get(packet[8:44])
                if socket is not None and whole.protocol == ip.PROTOCOL_TCP:
                    # Hosts fragment no TCP, but a SYN in a fragment must not become a second connection of one key.
                    self._to_connection(socket, packet, tcp.parse_untrusted(packet, ip.HEADER_SIZE), now)
                    return
            if parsed.protocol == ip.PROTOCOL_TCP:
                self._on_tcp(parsed, now)
            elif parsed.protocol == ip.PROTOCOL_UDP:
                self._on_udp(parsed, packet, now)
            elif parsed.protocol == ip.PROTOCOL_ICMP6:
                self._on_icmp(parsed, now)
            elif parsed.protocol == ip.PROTOCOL_TSMP:
                self._on_tsmp(parsed)
        except WireError:
            return  # the tunnel authenticates the sender, not its packets: malformed ones are dropped, as hosts do

    # TCP

    def _to_connection(self, socket: TcpSocket, packet: bytes, segment: Segment, now: float) -> None:
        # SYN alone: with ACK it would answer a SYN of this host, with RST it would be a reset. Neither opens a
        # connection.
        if socket.state is TcpState.TIME_WAIT and segment.flags & (tcp.SYN | tcp.ACK | tcp.RST) == tcp.SYN:
            # RFC 9293 3.6.1, RFC 6191: a SYN that is newer, by sequence number or timestamp, may reuse the addresses
            # immediately.
            times = segment.options.timestamps if socket.agreed.timestamps else None
            newer = 0 < (segment.seq - socket.receiver.rx.next) & MASK < HALF
            if newer or (times is not None and 0 < (times[0] - socket.receiver.ts_recent) & MASK < HALF):
                socket.fail(None)
                self._on_syn(socket.remote, socket.local, segment, now)
                return
        tcp_input.on_segment(socket, packet, segment, now)

    def _on_tcp(self, packet: ip.Packet, now: float) -> None:
        """Process a segment without a connection (RFC 9293 3.10.7.1 and .2)."""
        segment = tcp.parse_untrusted(packet.payload)
        # RFC 9293 section 3.10.7.1: no reset for a reset, or two hosts would answer each other without end.
        if segment.flags & tcp.RST:
            return
        if segment.flags & (tcp.SYN | tcp.ACK) == tcp.SYN:
            self._on_syn(packet.source, packet.destination, segment, now)
            return
        self._refuse(packet.source, packet.destination, segment)

    def _on_syn(self, source: bytes, destination: bytes, segment: Segment, now: float) -> None:
        listener = self.listeners.get(segment.port)
        if listener is not None:
            # Otherwise dropped, not refused: the peer retries when there may be room.
            if listener.make_room(source) and self._table.make_room(source):
                socket = self._accept(source, destination, segment, now)
                socket.wait_in(listener)
                listener.handshake_started(socket)
            return
        if self._tcp_fallback is None:
            self._refuse(source, destination, segment)
            return
        key = self._table.key(source, destination, segment.source_port, segment.port)
        # A retransmitted SYN while the fallback still decides; the first one is enough.
        if key in self.held:
            return
        if self._held_shares.is_full:
            victim = self._held_shares.evictable_for(source)
            if victim is None:
                return
            self._expire_held(victim)
        pending = PendingConnection(source, destination, segment, now, self._decide)
        self.held[key] = pending
        self._held_shares.add(source, key)
        self._tcp_fallback(pending)

    def _decide(self, pending: PendingConnection, accept: bool) -> TcpSocket | None:
        """Apply the fallback's decision about a held SYN."""
        syn = pending.syn
        key = self._table.key(pending.source, pending.destination, syn.source_port, syn.port)
        self.held.pop(key, None)
        self._held_shares.discard(pending.source, key)
        # Simultaneous open while the fallback decided: the connection exists already.
        if key in self._table.by_key:
            return None
        if not accept or not self._table.make_room(pending.source):
            self._refuse(pending.source, pending.destination, syn)
            return None
        socket = self._accept(pending.source, pending.destination, syn, self._transmit.now)
        socket.adopt()
        return socket

    def _accept(self, source: bytes, destination: bytes, syn: Segment, now: float) -> TcpSocket:
        socket = TcpSocket(self._transmit, destination, syn.port, source, syn.source_port, self._random(8))
        self._table.add_passive(socket)
        handshake.begin_accept(socket, syn, now)
        return socket

    def _refuse(self, source: bytes, destination: bytes, segment: Segment) -> None:
        self._transmit.send_control(source, tcp_input.stray_reset(destination, source, segment))

    # Held SYNs and time

    def next_wake(self) -> float | None:
        """Return when the oldest held SYN or fragment expires, or None."""
        fragments_at = self._assembler.next_expiry()
        if not self.held:
            return fragments_at
        at = next(iter(self.held.values())).held_at + self._transmit.settings.hold_syn
        return at if fragments_at is None or at < fragments_at else fragments_at

    @property
    def holds(self) -> bool:
        """Return whether anything waits for `on_timer`."""
        return bool(self.held or self._assembler.waiting)

    def on_timer(self, now: float) -> None:
        """Expire held SYNs and fragments."""
        self._assembler.expire(now)
        for key, pending in list(self.held.items()):
            # Held SYNs are ordered by age; the first young one ends the search.
            if now - pending.held_at < self._transmit.settings.hold_syn:
                break
            self._expire_held(key)

    def forget_held(self, source: bytes) -> None:
        """Expire the held SYNs and fragments of a removed peer."""
        self._assembler.forget(source)
        for key, pending in list(self.held.items()):
            if pending.source == source:
                self._expire_held(key)

    def forget_all_held(self) -> None:
        """Expire all held SYNs: the stack closes."""
        for key in list(self.held):
            self._expire_held(key)

    def _expire_held(self, key: bytes) -> None:
        pending = self.held.pop(key)
        pending.expire()
        self._held_shares.discard(pending.source, key)

    # UDP, ICMP, TSMP

    def _on_udp(self, packet: ip.Packet, raw: bytes, now: float) -> None:
        datagram = udp.parse_untrusted(packet.payload)
        arrived = UdpDatagram(packet.source, datagram.source_port, packet.destination, datagram.port, datagram.payload)
        # Only the port is matched: all addresses belong to one host, and no caller binds a port for one of them only.
        socket = self.udp_sockets.get(datagram.port)
        if socket is not None:
            if socket.arrived(arrived):
                self._transmit.notifier.touched[socket] = None
        elif self._udp_fallback is not None:
            self._udp_fallback(arrived)
        elif self._transmit.may_send_error(now):
            # RFC 4443 section 3.1, code 4: the sender learns it immediately instead of timing out.
            error = icmp.port_unreachable(raw, packet.destination, packet.source)
            self._transmit.send_control(packet.source, error)

    def _on_icmp(self, packet: ip.Packet, now: float) -> None:
        message = icmp.parse_untrusted(packet.payload)
        if message.type == icmp.ECHO_REQUEST:
            reply = icmp.Message(icmp.ECHO_REPLY, 0, message.parameter, message.body)
            self._transmit.send_large(packet.source, reply.encode(packet.destination, packet.source))
        elif message.type == icmp.ECHO_REPLY:
            self._on_stack_event(EchoReply(packet.source, message.identifier, message.sequence, message.body))
        elif message.type in (icmp.UNREACHABLE, icmp.TOO_BIG) and len(message.body) >= _QUOTED_SEQUENCE_END:
            self._on_error(packet.source, message, now)

    def _on_error(self, router: bytes, message: icmp.Message, now: float) -> None:
        """Process an ICMP error about a packet of this host, whose beginning is quoted."""
        quoted = bytes(message.body)
        source, destination = quoted[8:24], quoted[24:40]
        # RFC 8201 section 4 and RFC 5927 section 4.1: ignore an error about a packet that this host did not send.
        if source not in self._routes.addresses:
            return
        # Between two nodes there is no router inside the tunnel, and a gateway answers in its clients' names. An error
        # of a third peer is forged: it would narrow the path to the quoted one, or end a conversation with it.
        if router != destination:
            return
        is_too_big = message.type == icmp.TOO_BIG
        if quoted[6] == ip.PROTOCOL_TCP:
            # Source and destination are swapped in the key. RFC 5927 section 4.1: only outstanding data can have
            # failed; a sequence number outside it was guessed.
            key = destination + source + quoted[_PORT_AT : _PORT_AT + 2] + quoted[_PORT_AT - 2 : _PORT_AT]
            socket = self._table.by_key.get(key)
            number = int.from_bytes(quoted[_PORT_AT + 2 : _QUOTED_SEQUENCE_END], "big")
            # `max`: with nothing in flight only SND.NXT passes, which an attacker cannot know.
            if socket is None or (number - socket.sender.snd_una) & MASK >= max(socket.sender.in_flight, 1):
                return
            if is_too_big:
                if self._narrow(destination, message.parameter, now):
                    socket.recovery.on_too_big(now)
                    self._transmit.mark_ready(socket)
            # RFC 5927 section 5.2: on an established connection even a hard error is treated as a soft one. Otherwise
            # an attacker who guesses a sequence number ends connections, and so does a router that fails for a moment.
            elif socket.state is TcpState.SYN_SENT and message.code in _HARD_CODES:
                # no other address to try: RFC 5461 section 4 leaves it to the implementation
                socket.fail(StackError("refused"))
        # UDP has no sequence number to check. Sizes below IPv6's minimum are ignored (`Routes.narrow`), which leaves an
        # attacker little to gain.
        elif is_too_big:
            self._narrow(destination, message.parameter, now)
        if is_too_big:
            self._on_stack_event(TooBig(destination, message.parameter))
        else:
            self._on_stack_event(Unreachable(destination, int.from_bytes(quoted[_PORT_AT : _PORT_AT + 2], "big")))

    def _narrow(self, destination: bytes, mtu: int, now: float) -> bool:
        if not self._routes.narrow(destination, mtu, now):
            return False
        for socket in self._table.to(destination):
            socket.update_mss()
        return True

    def _on_tsmp(self, packet: ip.Packet) -> None:
        message = tsmp.parse_untrusted(packet.payload)
        if isinstance(message, tsmp.TsmpPing):
            pong = tsmp.TsmpPong(message.token)
            self._transmit.send_control(packet.source, pong.encode(packet.destination, packet.source))
        elif isinstance(message, tsmp.TsmpPong):
            self._on_stack_event(TsmpAnswer(packet.source, message.token))


def translated(packets: list[bytes]) -> list[bytes]:
    """Return packets of a host with an IPv4 address: IPv4 ones translated to IPv6; malformed ones are dropped."""
    out = []
    for packet in packets:
        if packet[:1] and packet[0] >> 4 == 4:
            try:
                out.append(ip4.to_ipv6_untrusted(packet))
            except WireError:
                continue
        else:
            out.append(packet)
    return out
