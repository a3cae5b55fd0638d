"""Map from a datagram's source address to its peer.

WireGuard datagrams are accepted only from addresses a peer has proven by disco to be its own (docs/protocol/disco.md),
so this map is the gate for everything that arrives by UDP.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from coder.mesh.core.paths.candidates import Address

Peer = TypeVar("Peer")

MAX_ADDRESSES = 64
"""Ours: addresses remembered per peer; a roaming peer proves its newest one again, the oldest is dropped."""


class PeerMap(Generic[Peer]):
    """(ip, port) -> peer."""

    __slots__ = ("_owned", "by_address")

    def __init__(self) -> None:
        self.by_address: dict[Address, Peer] = {}
        """Read directly by the hot path."""
        # A dictionary without values because it keeps the order: the oldest address is removed first.
        self._owned: dict[int, dict[Address, None]] = {}

    def learn(self, address: Address, peer: Peer, *, answered: bool) -> None:
        """Record that the peer proved that it sends from this address.

        `answered`: by an answer to our own ping. A ping alone may have a forged source: it takes no address from
        another peer.
        """
        # Called with every ping and pong; nearly always for the same peer.
        owner = self.by_address.get(address)
        if owner is peer:
            return
        if owner is not None:
            # Otherwise a peer that forges sources would own the address, and could have it forgotten by proving as many
            # others as are remembered: the other peer's data would be dropped until its next ping.
            if not answered:
                return
            # The last peer that proved the address owns it: behind one router an address passes from one peer to
            # another when a mapping expires.
            self._owned[id(owner)].pop(address, None)
        self.by_address[address] = peer
        # By identity: peers have no equality, and a reinstalled peer is another object.
        owned = self._owned.setdefault(id(peer), {})
        owned[address] = None
        # Only a peer with a valid disco key gets here, so it can only displace its own addresses.
        if len(owned) > MAX_ADDRESSES:
            oldest = next(iter(owned))
            del owned[oldest]
            del self.by_address[oldest]

    def forget(self, peer: Peer) -> None:
        """Remove a peer."""
        for address in self._owned.pop(id(peer), {}):
            del self.by_address[address]
