"""What is configured: our addresses, and how packets for each destination have to look.

Lives here: MTUs, checksums, the burst limit. Does not live here: who sends (transmit.py), who receives (demux.py).
Obeys: RFC 8201 (path MTU discovery), RFC 4443 section 2.4 f (rate of errors).
"""

from __future__ import annotations

from collections.abc import Iterable

from coder.mesh.core.stack.tcp.burst import BurstLimit
from coder.mesh.core.wire import ip, ip4, tcp

_FIXED_HEADERS = ip.HEADER_SIZE + tcp.HEADER_SIZE
_LEAST_MTU = 256
"""Ours: below it a packet would be mostly headers."""
_NARROW_LIFE = 600.0
"""RFC 8201 section 4: seconds after which a larger size may be tried again."""
_MAX_NARROWED = 1024
"""Ours: destinations; what a router says costs memory, so it is bounded."""


class Routes:
    """Addresses are 16 bytes, IPv4's also 4 where a verb takes one."""

    __slots__ = ("_mtu_to", "addresses", "burst", "has_ipv4", "mtu", "narrowed")

    def __init__(self, addresses: Iterable[bytes], mtu: int) -> None:
        self.addresses = [ip4.address16(address) for address in addresses]
        self.has_ipv4 = any(map(ip4.is_ipv4, self.addresses))
        "Whether packets have to be looked at for IPv4 at all."
        self.mtu = mtu
        "The largest inner packet, unless something else is known of a destination."
        self.burst = BurstLimit()
        self._mtu_to: dict[bytes, int] = {}
        self.narrowed: dict[bytes, tuple[int, float]] = {}
        "What a router beyond the peer said about its link, and when."

    # Addresses

    def add(self, address: bytes) -> None:
        """Answer for one more address."""
        address = ip4.address16(address)
        if address not in self.addresses:
            self.addresses.append(address)
            self.has_ipv4 = self.has_ipv4 or ip4.is_ipv4(address)

    def source_for(self, destination: bytes) -> bytes:
        """Where packets to the destination come from: our first address of its family."""
        if not self.has_ipv4:
            return self.addresses[0]
        family = ip4.is_ipv4(destination)
        # Falling back to the first keeps a caller's mistake a packet nobody answers, not an exception.
        return next((a for a in self.addresses if ip4.is_ipv4(a) == family), self.addresses[0])

    # Sizes

    def set_mtu(self, destination: bytes, mtu: int | None) -> None:
        """The largest inner packet for a destination, None: default."""
        if mtu is None:
            self._mtu_to.pop(destination, None)
        else:
            # What was measured is believed below IPv6's least size too: it is our own probe's word
            # (docs/decisions/path-mtu.md).
            self._mtu_to[destination] = max(mtu, _LEAST_MTU)

    def narrow(self, destination: bytes, mtu: int, now: float) -> bool:
        """A router takes packets of at most `mtu` bytes (RFC 8201): whether that is news. Believed for ten minutes."""
        self.forget_narrowings(now)
        # RFC 8201 section 4: of IPv6 a size below 1280 has to be discarded. No link is that narrow, and whoever claims
        # it wants tiny packets of us, or fragments (RFC 8021). IPv4 has no such floor.
        least = _LEAST_MTU if ip4.is_ipv4(destination) else ip.MIN_MTU
        if not least <= mtu < self.limit_to(destination) or len(self.narrowed) >= _MAX_NARROWED:
            return False
        self.narrowed[destination] = (mtu, now)
        return True

    def forget_narrowings(self, now: float) -> None:
        """Ten minutes are over for some."""
        # Connections keep their smaller segments until something else retunes them: RFC 8201 section 4 allows growth,
        # it does not ask for it.
        for address in [a for a, (_, since) in self.narrowed.items() if now - since >= _NARROW_LIFE]:
            del self.narrowed[address]

    def limit_to(self, destination: bytes) -> int:
        """The largest inner packet for a destination, whatever its kind."""
        limit = self._mtu_to.get(destination, self.mtu)
        if self.narrowed and destination in self.narrowed:
            return min(limit, self.narrowed[destination][0])
        return limit

    def segment_limit(self, destination: bytes, peer_mss: int, peer_packet: int) -> int:
        """Bytes behind the fixed TCP header that path and peer take.

        `peer_packet`: what a peer with this stack takes beyond the MSS it named, else 0.
        """
        special = self._mtu_to.get(destination, 0)
        # Beyond the MSS only to a node of our own kind that said how much it takes: RFC 9293 section 3.7.1 forbids it
        # to all others.
        if self.mtu < special <= peer_packet and destination not in self.narrowed:
            return special - _FIXED_HEADERS
        return min(min(self.limit_to(destination), self.mtu) - _FIXED_HEADERS, peer_mss)

    @property
    def own_mss(self) -> int:
        """The MSS to announce (RFC 9293 3.7.1); larger packets than usual are announced by SAME_STACK_PACKET instead.

        Smaller ones not at all: the path may widen, an MSS is for good, and the peer measures its own direction.
        """
        return self.mtu - _FIXED_HEADERS
