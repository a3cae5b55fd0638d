"""Where a peer might be reached by UDP: its candidate addresses, who told us of them, how they answered.

Lives here: one peer's addresses and the throttle on probing them. Which of them carries data is `selector.py`'s
decision. Obeys docs/protocol/disco.md, "Hearing" and "Speaking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Flag, auto
from ipaddress import ip_address, ip_network

from coder.mesh.core.paths.mtu import MtuSearch

Address = tuple[str, int]
"""(IP text in canonical form, UDP port): what sockets give and take, and cheap to hash."""

# As long as a ping may be under way (docs/protocol/disco.md#hearing): a faster one could be told no news.
PROBE_INTERVAL = 5.0
"""Seconds between two pings to the same candidate."""
# Ten seconds more than the five minutes that RFC 4787 section 4.3 recommends for a router's memory: as long as the
# mapping may live, its other end may speak again.
DISCOVERED_LIFE = 310.0
"""A candidate known only from its own pings is forgotten after this silence (5 min 10 s)."""
MAX_CANDIDATES = 100
"""Ours: a peer that lists more addresses than any real machine has does not get more of our memory."""

# A peer that lists its overlay address would have us send the tunnel's datagrams into the tunnel.
_OVERLAY = ip_network("fd60:627a:a42b::/48")


class Source(Flag):
    """Who vouches for a candidate."""

    CONFIGURED = auto()
    """The coordinator listed it."""
    CALLED = auto()
    """The peer's last call-me-maybe listed it."""
    DISCOVERED = auto()
    """The peer pinged us from it."""


@dataclass(slots=True)
class Candidate:
    """One address of a peer."""

    address: Address
    source: Source
    # Three times, each the throttle of another question: our probing, the peer's life, our echoes.
    last_ping: float | None = None
    """When we last pinged it."""
    last_heard: float | None = None
    """When a ping from it last arrived."""
    last_echo: float | None = None
    """When we last answered a ping from it with a ping of our own."""
    # The last one, not the best or a mean: a path that has become slow is to be left.
    latency: float | None = None
    """Round trip of the last pong, seconds."""
    mtu: MtuSearch | None = None
    """What it carries; None while it never answered."""


@dataclass(slots=True)
class Candidates:
    """The addresses of one peer."""

    by_address: dict[Address, Candidate] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.by_address.values())

    def __len__(self) -> int:
        return len(self.by_address)

    def replace(self, source: Source, addresses: Iterable[Address]) -> list[Address]:
        """Make `addresses` the whole list `source` vouches for; -> candidates nobody vouches for any longer."""
        # A peer says where it may be reached, and each of these gets pings: a longer list would make us flood for it.
        wanted = list(addresses)[:MAX_CANDIDATES]
        for address in wanted:
            self.add(source, address)
        gone = []
        listed = set(wanted)
        for candidate in list(self.by_address.values()):
            if source in candidate.source and candidate.address not in listed:
                # What a ping was heard from stays although the coordinator no longer lists it: that is how symmetric
                # routers look.
                candidate.source &= ~source
                if not candidate.source:
                    gone.append(candidate.address)
                    del self.by_address[candidate.address]
        return gone

    def add(self, source: Source, address: Address) -> Candidate | None:
        """Note that `source` vouches for the address; None when there are too many already."""
        candidate = self.by_address.get(address)
        if candidate is None:
            if len(self.by_address) >= MAX_CANDIDATES:
                return None
            candidate = self.by_address[address] = Candidate(address, source)
        else:
            # Several may vouch for one address; it goes when the last of them takes it back.
            candidate.source |= source
        return candidate

    def heard(self, address: Address, now: float) -> None:
        """A ping of the peer came from this address."""
        # Behind a router that nobody listed: that is the usual way to a peer at home.
        candidate = self.add(Source.DISCOVERED, address)
        if candidate is not None:
            candidate.last_heard = now

    def due(self, now: float) -> list[Candidate]:
        """Candidates that may be pinged now."""
        # All of them, in the order in which they became known: which one works is what we ask.
        return [c for c in self if c.last_ping is None or now - c.last_ping >= PROBE_INTERVAL]

    def unthrottle(self) -> None:
        """Let every candidate be pinged at once (a call-me-maybe opened the far firewall)."""
        for candidate in self:
            candidate.last_ping = None

    def expire(self, now: float) -> list[Address]:
        """Forget addresses that only their own, long past, pings vouch for; -> those."""
        gone = [
            c.address
            for c in self
            if c.source is Source.DISCOVERED and c.last_heard is not None and now - c.last_heard > DISCOVERED_LIFE
        ]
        # What the coordinator or a call lists stays, heard or not: only its source takes it back.
        for address in gone:
            del self.by_address[address]
        return gone


def usable(address: Address) -> bool:
    """Whether a peer's claim to live at this address makes sense from outside of its machine.

    Link-local IPv6 would need our scope, overlay addresses would run the tunnel through itself.
    """
    try:
        # Names are refused with everything else that is no address: a peer must not choose what we resolve.
        ip = ip_address(address[0])
    except ValueError:
        return False
    # A multicast address would have us ping a whole network on a peer's word.
    if address[1] == 0 or ip.is_unspecified or ip.is_multicast:
        return False
    if ip.version == 4:
        return True
    # Private addresses stay in: both may be in one network, and a ping to a stranger's machine opens nothing.
    return not ip.is_link_local and ip not in _OVERLAY
