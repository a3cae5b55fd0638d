"""Flows that hosts behind a router opened: the state of a stateful firewall.

Lives here: packets in, allowed or not out. Does not live here: which hosts may communicate at all, and what happens to
a rejected packet (drivers/wireguard_gateway.py).
Obeys: RFC 6092 (firewalls of customers' IPv6 routers) for TCP, UDP and ICMPv6; other protocols open no flow.

Only packets from inside open a flow or refresh it. A packet in the middle of a conversation opens a flow too, so that
connections survive a restart of the router: an outside host cannot make the inside send such a packet.
"""

from __future__ import annotations

from collections import OrderedDict

from coder.mesh.core.wire import ip
from coder.mesh.fair_shares import FairShares

MAX_FLOWS = 4096
"""Flows of one client; the least recently used one is dropped. A browser has hundreds."""
MAX_FRAGMENTS = 64
"""Datagrams whose later fragments are still awaited, shared by their senders."""
# RFC 6092 REC-35 requires two hours and four minutes at least, for an established connection.
TCP_LIFE = 24 * 3600.0
"""Seconds of silence: SSH sessions stay open over night."""
SHORT_LIFE = 300.0
"""Seconds of silence for UDP and echoes: RFC 4787 recommends five minutes."""

_FRAGMENT, _FRAGMENT_SIZE = 44, 8
_ECHO_REQUEST, _ECHO_REPLY = 128, 129
# RFC 4443 section 2.1: the highest bit of an ICMPv6 type distinguishes errors from everything else.
_ERRORS_BELOW = 128
_SYN, _ACK = 0x02, 0x10
_TRANSPORT = {ip.PROTOCOL_TCP: 14, ip.PROTOCOL_UDP: 4, ip.PROTOCOL_ICMP6: 8}
"""Minimum bytes of each header."""

Key = tuple[int, bytes, bytes, int, int]
"""(protocol, inside, outside, port inside, port outside); for echoes the identifier replaces both ports."""


class FlowTable:
    """The flows of one client."""

    __slots__ = ("_flows", "_fragments", "_fragments_by")

    def __init__(self) -> None:
        self._flows: OrderedDict[Key, float] = OrderedDict()
        """Key -> expiry."""
        self._fragments: OrderedDict[tuple[bytes, bytes, bytes], None] = OrderedDict()
        """(source, destination, identification) of datagrams whose first fragment came in, the oldest first."""
        self._fragments_by: FairShares[tuple[bytes, bytes, bytes]] = FairShares(MAX_FRAGMENTS)

    def __len__(self) -> int:
        return len(self._flows)

    def sent(self, packet: bytes, now: float) -> None:
        """Record an outgoing packet (any whole IPv6 packet): opens or refreshes its flow."""
        protocol, at, _ = _transport(packet)
        # An error or an answer from inside opens nothing: it belongs to an existing flow, or needs no answer.
        if not at or (protocol == ip.PROTOCOL_ICMP6 and packet[at] != _ECHO_REQUEST):
            return
        key = _key(packet, protocol, at, outward=True)
        self._flows[key] = now + (TCP_LIFE if protocol == ip.PROTOCOL_TCP else SHORT_LIFE)
        # Incoming packets do not refresh a flow: RFC 4787 (REQ-6) makes the outbound direction refresh, as an outside
        # host could otherwise keep a hole open.
        self._flows.move_to_end(key)
        if len(self._flows) > MAX_FLOWS:
            self._flows.popitem(last=False)

    def may_enter(self, packet: bytes, now: float) -> bool:
        """Return whether a packet from outside belongs to a flow, or is an error about a flow."""
        protocol, at, later_of = _transport(packet)
        if later_of is not None:
            # A datagram whose first fragment arrives late is lost: keeping the later fragments would store data of
            # strangers.
            return later_of in self._fragments
        if not at:
            return False
        if protocol == ip.PROTOCOL_ICMP6 and packet[at] < _ERRORS_BELOW:
            return self._is_about_a_flow(packet[at + 8 :], packet[8:24], packet[24:40], now)
        if protocol == ip.PROTOCOL_ICMP6 and packet[at] != _ECHO_REPLY:
            return False
        if protocol == ip.PROTOCOL_TCP and packet[at + 13] & (_SYN | _ACK) == _SYN:
            return False  # a connection opened from outside, on ports that happen to be in use
        if not self._knows(_key(packet, protocol, at, outward=False), now):
            return False
        if packet[6] == _FRAGMENT:
            self._await_fragments(_datagram(packet))
        return True

    def _await_fragments(self, datagram: tuple[bytes, bytes, bytes]) -> None:
        shares, source = self._fragments_by, datagram[0]
        if datagram in self._fragments:
            return
        if shares.is_full:
            victim = shares.evictable_for(source) or shares.oldest_of(source) or next(iter(self._fragments))
            del self._fragments[victim]
            shares.discard(victim[0], victim)
        self._fragments[datagram] = None
        shares.add(source, datagram)

    def _is_about_a_flow(self, quoted: bytes, outside: bytes, inside: bytes, now: float) -> bool:
        """Return whether an ICMP error quotes a packet of a flow between `inside`, its receiver, and `outside`.

        The quote may be truncated behind the ports.
        """
        if len(quoted) < ip.HEADER_SIZE or quoted[0] >> 4 != 6:
            return False
        # The mesh has no routers: only the peer at the other end may report about the flow, not another one.
        if quoted[8:24] != inside or quoted[24:40] != outside:
            return False
        # The quote may end anywhere behind the IPv6 header. Four bytes are the ports, which identify a flow together
        # with the addresses.
        protocol, at, _ = _transport(quoted, needed=4)
        return bool(at) and self._knows(_key(quoted, protocol, at, outward=True), now)

    def _knows(self, key: Key, now: float) -> bool:
        end = self._flows.get(key)
        if end is None:
            return False
        if end <= now:
            # Expiry is checked on lookup; flows without lookups are dropped by number.
            del self._flows[key]
            return False
        return True


def _transport(packet: bytes, needed: int = 0) -> tuple[int, int, tuple[bytes, bytes, bytes] | None]:
    """Return (protocol, offset of its header, datagram of a later fragment).

    The offset is 0 for packets without a header of the three protocols. The third item is None unless the packet is a
    later fragment: then it identifies the datagram.
    """
    protocol, at = packet[6], ip.HEADER_SIZE
    if protocol == _FRAGMENT:
        if len(packet) < at + _FRAGMENT_SIZE:
            return 0, 0, None
        # A later fragment has no ports: it passes if the first one did, by the identification both carry.
        if packet[at + 2] or packet[at + 3] & 0xF8:
            return 0, 0, _datagram(packet)
        protocol, at = packet[at], at + _FRAGMENT_SIZE
    size = _TRANSPORT.get(protocol)
    if size is None or len(packet) < at + (needed or size):
        return 0, 0, None
    return protocol, at, None


def _datagram(packet: bytes) -> tuple[bytes, bytes, bytes]:
    at = ip.HEADER_SIZE
    return packet[8:24], packet[24:40], packet[at + 4 : at + 8]


def _key(packet: bytes, protocol: int, at: int, *, outward: bool) -> Key:
    source, destination = packet[8:24], packet[24:40]
    if protocol == ip.PROTOCOL_ICMP6:
        first = second = int.from_bytes(packet[at + 4 : at + 6], "big")
    else:
        first, second = int.from_bytes(packet[at : at + 2], "big"), int.from_bytes(packet[at + 2 : at + 4], "big")
    if outward:
        return protocol, source, destination, first, second
    return protocol, destination, source, second, first
