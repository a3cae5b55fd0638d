"""Who gets a packet that no run took.

Lives here: protocols, ports, listeners, held SYNs, automatic answers.
Does not live here: the tables themselves (interface.py), what a segment does to its connection (arrival.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.mesh.core.errors import WireError
from coder.mesh.core.stack import arrival, fragments, handshake, recovery
from coder.mesh.core.stack.connection import HALF, MASK, TcpSocket
from coder.mesh.core.stack.datagrams import UdpDatagram
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.listening import PendingConnection
from coder.mesh.core.stack.notices import EchoReply, TooBig, TsmpPong, Unreachable
from coder.mesh.core.stack.states import State
from coder.mesh.core.wire import icmp, ip, ip4, tcp, tsmp, udp
from coder.mesh.core.wire.batch import Batch, TxBuf
from coder.mesh.core.wire.tcp import Segment

if TYPE_CHECKING:
    from coder.mesh.core.stack.interface import Stack

_PORT_AT = ip.HEADER_SIZE + 2
_QUOTED_SEQUENCE_END = ip.HEADER_SIZE + 8
_HARD_CODES = (icmp.CODE_PROHIBITED, icmp.CODE_PORT_UNREACHABLE)


def on_packet(stack: Stack, packet: bytes, socket: TcpSocket | None, now: float) -> None:
    """Any inner packet. `socket`: the connection its addresses and first four bytes match, if any. Never raises."""
    try:
        if socket is not None and packet[6] == ip.PROTOCOL_TCP and packet[0] >> 4 == 6:
            end = ip.HEADER_SIZE + (packet[4] << 8 | packet[5])
            if end > len(packet):
                return
            segment = tcp.parse_untrusted(packet, ip.HEADER_SIZE, end)
            _to_connection(stack, socket, packet, segment, now)
            return
        parsed = ip.parse_untrusted(packet)
        if parsed.destination not in stack.addresses:
            return
        if parsed.protocol == fragments.PROTOCOL:
            whole = stack.assembler.add(parsed, now)
            if whole is None:
                return
            parsed, packet = whole, whole.encode()
        handler = _HANDLERS.get(parsed.protocol)
        if handler is not None:
            handler(stack, parsed, packet, now)
    except WireError:
        return  # the tunnel vouches for the sender, nobody for its sanity: dropped, as hosts do


def _to_connection(stack: Stack, socket: TcpSocket, packet: bytes, segment: Segment, now: float) -> None:
    if socket.state is State.TIME_WAIT and segment.flags & (tcp.SYN | tcp.ACK | tcp.RST) == tcp.SYN:
        # RFC 9293 3.6.1, RFC 6191: a newer SYN may reuse the addresses at once.
        times = segment.options.timestamps
        newer = 0 < (segment.seq - socket.rx.next) & MASK < HALF
        if newer or (times is not None and socket.ts_ok and 0 < (times[0] - socket.ts_recent) & MASK < HALF):
            socket.die(None)
            _on_syn(stack, socket.remote, socket.local, segment, now)
            return
    arrival.on_segment(socket, packet, segment, now)


def _on_tcp(stack: Stack, packet: ip.Packet, _raw: bytes, now: float) -> None:
    segment = tcp.parse_untrusted(packet.payload)
    if segment.flags & tcp.RST:
        return
    if segment.flags & (tcp.SYN | tcp.ACK) == tcp.SYN:
        _on_syn(stack, packet.source, packet.destination, segment, now)
        return
    stack.send_control(packet.source, arrival.stray_reset(packet.destination, packet.source, segment))


def _on_syn(stack: Stack, source: bytes, destination: bytes, segment: Segment, now: float) -> None:
    key = source + destination + segment.source_port.to_bytes(2, "big") + segment.port.to_bytes(2, "big")
    listener = stack.listeners.get(segment.port)
    if listener is not None:
        if listener.opening + len(listener.queue) < listener.backlog:
            socket = _accept(stack, source, destination, segment, now)
            socket.accepted_by = listener
            listener.opening += 1
        return
    if stack.tcp_fallback is None:
        stack.send_control(source, arrival.stray_reset(destination, source, segment))
        return
    if key in stack.held or len(stack.held) >= stack.settings.max_held_syns:
        return
    pending = PendingConnection(source, destination, segment, now, lambda held, yes: _decide(stack, key, held, yes))
    stack.held[key] = pending
    stack.tcp_fallback(pending)


def _decide(stack: Stack, key: bytes, pending: PendingConnection, accept: bool) -> TcpSocket | None:
    pending.settled = True
    stack.held.pop(key, None)
    if key in stack.sockets:
        return None
    if accept:
        socket = _accept(stack, pending.source, pending.destination, pending.syn, stack.now)
        socket.adopted = True
        return socket
    stack.send_control(pending.source, arrival.stray_reset(pending.destination, pending.source, pending.syn))
    return None


def _accept(stack: Stack, source: bytes, destination: bytes, syn: Segment, now: float) -> TcpSocket:
    socket = TcpSocket(stack, destination, syn.port, source, syn.source_port, stack.random(8))
    stack.sockets[socket.key] = socket
    handshake.begin_accept(socket, syn, now)
    return socket


def _on_udp(stack: Stack, packet: ip.Packet, raw: bytes, now: float) -> None:
    datagram = udp.parse_untrusted(packet.payload)
    arrived = UdpDatagram(packet.source, datagram.source_port, packet.destination, datagram.port, datagram.payload)
    socket = stack.udp_sockets.get(datagram.port)
    if socket is not None:
        if socket.arrived(arrived):
            stack.make_touched(socket)
    elif stack.udp_fallback is not None:
        stack.udp_fallback(arrived)
    elif stack.may_complain(now):
        stack.send_control(packet.source, icmp.port_unreachable(raw, packet.destination, packet.source))


def _on_icmp(stack: Stack, packet: ip.Packet, _raw: bytes, now: float) -> None:
    message = icmp.parse_untrusted(packet.payload)
    if message.type == icmp.ECHO_REQUEST:
        reply = icmp.Message(icmp.ECHO_REPLY, 0, message.parameter, message.body)
        stack.send_large(packet.source, reply.encode(packet.destination, packet.source))
    elif message.type == icmp.ECHO_REPLY:
        stack.on_notice(EchoReply(packet.source, message.identifier, message.sequence, message.body))
    elif message.type in (icmp.UNREACHABLE, icmp.TOO_BIG) and len(message.body) >= _QUOTED_SEQUENCE_END:
        _on_error(stack, message, now)


def _on_error(stack: Stack, message: icmp.Message, now: float) -> None:
    """Somebody on the way could not deliver a packet of ours, whose beginning is quoted."""
    quoted = bytes(message.body)
    source, destination = quoted[8:24], quoted[24:40]
    is_too_big = message.type == icmp.TOO_BIG
    if quoted[6] == ip.PROTOCOL_TCP:
        # Our ports stand the other way round in the key. RFC 5927 section 4.1: only what is under way can have failed.
        key = destination + source + quoted[_PORT_AT : _PORT_AT + 2] + quoted[_PORT_AT - 2 : _PORT_AT]
        socket = stack.sockets.get(key)
        number = int.from_bytes(quoted[_PORT_AT + 2 : _QUOTED_SEQUENCE_END], "big")
        if socket is None or (number - socket.snd_una) & MASK >= max(socket.snd_nxt - socket.snd_una, 1):
            return
        if is_too_big:
            if stack.narrow(destination, message.parameter, now):
                recovery.on_too_big(socket, now)
        elif socket.state is State.SYN_SENT and message.code in _HARD_CODES:
            socket.die(StackError("refused"))  # nobody to ask again: RFC 5461 section 4 leaves it to us
    elif is_too_big:
        stack.narrow(destination, message.parameter, now)
    if is_too_big:
        stack.on_notice(TooBig(destination, message.parameter))
    else:
        stack.on_notice(Unreachable(destination, int.from_bytes(quoted[_PORT_AT : _PORT_AT + 2], "big")))


def _on_tsmp(stack: Stack, packet: ip.Packet, _raw: bytes, _now: float) -> None:
    message = tsmp.parse_untrusted(packet.payload)
    if isinstance(message, tsmp.Ping):
        pong = tsmp.Pong(message.token)
        stack.send_control(packet.source, pong.encode(packet.destination, packet.source))
    elif isinstance(message, tsmp.Pong):
        stack.on_notice(TsmpPong(packet.source, message.token))


_HANDLERS = {
    ip.PROTOCOL_TCP: _on_tcp,
    ip.PROTOCOL_UDP: _on_udp,
    ip.PROTOCOL_ICMP6: _on_icmp,
    ip.PROTOCOL_TSMP: _on_tsmp,
}


def translated(packets: list[bytes]) -> list[bytes]:
    """Packets of a host with an IPv4 address: IPv4 ones as IPv6; those that make no sense are left out."""
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


def unpadded(txbuf: TxBuf, batch: Batch) -> list[bytes]:
    """The packets of a batch as bytes of their own, without padding."""
    layout = txbuf.layout(batch.size)
    out = []
    for view in layout.plain[: batch.packets]:
        out.append(bytes(view[: ip.HEADER_SIZE + (view[4] << 8 | view[5])]))
    return out
