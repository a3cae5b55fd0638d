"""Configuration: own addresses, and per-destination packet limits.

Lives here: MTUs, checksums, the burst limit. Does not live here: output (transmit.py), input (demux.py).
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


class Routes:
    """Own addresses and limits. Addresses are 16 bytes, IPv4's also 4 where a verb accepts one."""

    __slots__ = ("_mtu_to", "addresses", "burst", "has_ipv4", "mtu", "narrowed")

    def __init__(self, addresses: Iterable[bytes], mtu: int) -> None:
        self.addresses = [ip4.address16(address) for address in addresses]
        self.has_ipv4 = any(map(ip4.is_ipv4, self.addresses))
        "Whether packets have to be checked for IPv4 at all."
        self.mtu = mtu
        "The largest inner packet, unless a destination has its own limit."
        self.burst = BurstLimit()
        self._mtu_to: dict[bytes, int] = {}
        self.narrowed: dict[bytes, tuple[int, float]] = {}
        "Destination -> (MTU that it reported, when). One entry for each address of a peer at most."

    # Addresses

    def add(self, address: bytes) -> None:
        """Add an own address."""
        address = ip4.address16(address)
        if address not in self.addresses:
            self.addresses.append(address)
            self.has_ipv4 = self.has_ipv4 or ip4.is_ipv4(address)

    def source_for(self, destination: bytes) -> bytes:
        """Return the source address of packets to the destination: the first own address of its family."""
        if not self.has_ipv4:
            return self.addresses[0]
        family = ip4.is_ipv4(destination)
        # Falling back to the first address turns a caller's mistake into an unanswered packet, not an exception.
        return next((a for a in self.addresses if ip4.is_ipv4(a) == family), self.addresses[0])

    # Sizes

    def set_mtu(self, destination: bytes, mtu: int | None) -> None:
        """Set the largest inner packet for a destination, None: default."""
        if mtu is None:
            self._mtu_to.pop(destination, None)
        else:
            # A measured size is accepted below IPv6's minimum too: it comes from our own probe
            # (docs/decisions/path-mtu.md).
            self._mtu_to[destination] = max(mtu, _LEAST_MTU)

    def narrow(self, destination: bytes, mtu: int, now: float) -> bool:
        """Record that the path to a peer takes packets of at most `mtu` bytes (RFC 8201), for ten minutes; return
        whether it is new. The caller has checked that the peer itself says so."""
        self.forget_narrowings(now)
        # RFC 8201 section 4: for IPv6 a size below 1280 has to be discarded. No link is that narrow, and a router that
        # claims it tries to make us send tiny packets or fragments (RFC 8021). IPv4 has no such minimum.
        min_mtu = _LEAST_MTU if ip4.is_ipv4(destination) else ip.MIN_MTU
        if not min_mtu <= mtu < self.limit_to(destination):
            return False
        self.narrowed[destination] = (mtu, now)
        return True

    def forget_narrowings(self, now: float) -> None:
        """Forget the sizes reported more than ten minutes ago."""
        # Connections keep their smaller segments until another event retunes them: RFC 8201 section 4 allows growth, it
        # does not require it.
        for address in [a for a, (_, since) in self.narrowed.items() if now - since >= _NARROW_LIFE]:
            del self.narrowed[address]

    def forget(self, destination: bytes) -> None:
        """Forget the size that a removed peer reported."""
        self.narrowed.pop(destination, None)

    def limit_to(self, destination: bytes) -> int:
        """Return the largest inner packet for a destination, whatever its protocol."""
        limit = self._mtu_to.get(destination, self.mtu)
        if self.narrowed and destination in self.narrowed:
            return min(limit, self.narrowed[destination][0])
        return limit

    def segment_limit(self, destination: bytes, peer_mss: int, peer_packet: int) -> int:
        """Return the bytes behind the fixed TCP header that path and peer take.

        `peer_packet`: the packet size a peer with this stack takes beyond the MSS it announced, else 0.
        """
        special = self._mtu_to.get(destination, 0)
        # Beyond the MSS only to a node with the same stack that announced its limit: RFC 9293 section 3.7.1 forbids it
        # for all others.
        if self.mtu < special <= peer_packet and destination not in self.narrowed:
            return special - _FIXED_HEADERS
        return min(min(self.limit_to(destination), self.mtu) - _FIXED_HEADERS, peer_mss)

    @property
    def own_mss(self) -> int:
        """Return the MSS to announce (RFC 9293 3.7.1).

        Larger packets than usual are announced by SAME_STACK_PACKET instead. Smaller ones are not announced: the path
        may widen, an MSS is permanent, and the peer measures its own direction.
        """
        return self.mtu - _FIXED_HEADERS
