"""Candidate addresses of a peer: their sources, and how they answered.

Lives here: one peer's addresses and the throttle on probing them. The address that carries data is `selector.py`'s
decision. Obeys docs/protocol/disco.md, "Hearing" and "Speaking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Flag, auto
from ipaddress import ip_address, ip_network

from coder.mesh.core.paths.mtu import MtuSearch

Address = tuple[str, int]
"""(IP text in canonical form, UDP port): the form sockets use, and cheap to hash."""

# As long as a ping may be in flight (docs/protocol/disco.md#receiving): a faster one would bring no news.
PROBE_INTERVAL = 5.0
"""Seconds between two pings to the same candidate."""
# Ten seconds more than the five minutes that RFC 4787 section 4.3 recommends for a router's mapping: as long as the
# mapping may live, its other end may send again.
DISCOVERED_LIFE = 310.0
"""A candidate known only from its own pings is forgotten after this silence (5 min 10 s)."""
MAX_CANDIDATES = 100
"""Ours: a peer that lists more addresses than any real machine has gets no more of our memory."""
UNPROVEN_BURST, UNPROVEN_RATE = 2.0 * MAX_CANDIDATES, 20.0
"""Ours: pings to a peer's candidates that never answered, at once and per second. A peer can list any addresses, and
call as often as it likes: without a limit each of its calls of 2 kB sends 130 kB to machines that never asked for it. A
real peer with ten addresses needs seven a second while nothing works."""

# A peer that lists its overlay address would make us send the tunnel's datagrams into the tunnel.
_OVERLAY = ip_network("fd60:627a:a42b::/48")


class Source(Flag):
    """Source of a candidate."""

    CONFIGURED = auto()
    """The coordinator listed it."""
    CALLED = auto()
    """The peer's last call-me-maybe listed it."""
    DISCOVERED = auto()
    """The peer pinged us from it."""


@dataclass(slots=True)
class Candidate:
    """An address of a peer."""

    address: Address
    source: Source
    # Three times, each for another throttle: our probing, the peer's life, our echoes.
    last_ping: float | None = None
    """Time of our last ping to it."""
    last_heard: float | None = None
    """Arrival of the last ping from it."""
    last_echo: float | None = None
    """Time of our last ping that answered one from it."""
    # The last one, not the best or a mean: a path that has become slow is to be left.
    latency: float | None = None
    """Round trip of the last pong, seconds."""
    mtu: MtuSearch | None = None
    """Bytes it carries; None while it never answered."""


@dataclass(slots=True)
class Candidates:
    """The candidates of a peer."""

    by_address: dict[Address, Candidate] = field(default_factory=dict)
    _allowance: float = UNPROVEN_BURST
    _allowance_at: float = 0.0

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.by_address.values())

    def __len__(self) -> int:
        return len(self.by_address)

    def replace(self, source: Source, addresses: Iterable[Address]) -> list[Address]:
        """Replace the whole list of `source`; return candidates that no source lists any longer."""
        # A peer publishes its addresses, and each of them gets pings: a longer list would make us flood for it.
        accepted = list(addresses)[:MAX_CANDIDATES]
        removed = []
        listed = set(accepted)
        for candidate in list(self.by_address.values()):
            if source in candidate.source and candidate.address not in listed:
                # An address that a ping came from stays although the coordinator no longer lists it: symmetric routers
                # cause that.
                candidate.source &= ~source
                if not candidate.source:
                    removed.append(candidate.address)
                    del self.by_address[candidate.address]
        # Afterwards: a list that fills the table must not keep the next one out.
        for address in accepted:
            self.add(source, address)
        return removed

    def add(self, source: Source, address: Address) -> Candidate | None:
        """Record that `source` lists the address; return None when there are too many already."""
        candidate = self.by_address.get(address)
        if candidate is None:
            if len(self.by_address) >= MAX_CANDIDATES and not self._make_room():
                return None
            candidate = self.by_address[address] = Candidate(address, source)
        else:
            # Several sources may list one address; it is removed when the last of them withdraws it.
            candidate.source |= source
        return candidate

    def _make_room(self) -> bool:
        """Forget the oldest address that is known only by pings from it and has never answered one."""
        # A recorded ping replayed from a hundred forged addresses must not keep the peer's own addresses out.
        for address, candidate in self.by_address.items():
            if candidate.source is Source.DISCOVERED and candidate.latency is None:
                del self.by_address[address]
                return True
        return False

    def may_ping(self, candidate: Candidate, now: float) -> bool:
        """Return whether this candidate may be pinged now, and count the ping. Proven addresses may be always."""
        if candidate.latency is not None:
            return True
        refill = max(0.0, now - self._allowance_at) * UNPROVEN_RATE
        self._allowance = min(UNPROVEN_BURST, self._allowance + refill)
        self._allowance_at = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    def heard(self, address: Address, now: float) -> None:
        """Record a ping of the peer from this address."""
        # Behind a router that no source listed: the usual way to a peer at home.
        candidate = self.add(Source.DISCOVERED, address)
        if candidate is not None:
            candidate.last_heard = now

    def due(self, now: float) -> list[Candidate]:
        """Return candidates that may be pinged now."""
        # All of them, in the order in which they became known: the pings find out which one works.
        return [c for c in self if c.last_ping is None or now - c.last_ping >= PROBE_INTERVAL]

    def unthrottle(self) -> None:
        """Let every candidate be pinged immediately (a call-me-maybe opened the far firewall)."""
        for candidate in self:
            candidate.last_ping = None

    def expire(self, now: float) -> list[Address]:
        """Remove and return addresses known only from their own old pings."""
        removed = [
            c.address
            for c in self
            if c.source is Source.DISCOVERED and c.last_heard is not None and now - c.last_heard > DISCOVERED_LIFE
        ]
        # Addresses listed by the coordinator or a call stay, heard or not: only their source withdraws them.
        for address in removed:
            del self.by_address[address]
        return removed


def usable(address: Address) -> bool:
    """Return whether a peer's claimed address is plausible from outside of its machine.

    Link-local IPv6 would need our scope, overlay addresses would run the tunnel through itself.
    """
    try:
        # Names are refused like all other texts without an address: a peer must not choose what we resolve.
        ip = ip_address(address[0])
    except ValueError:
        return False
    # A multicast address would make us ping a whole network at a peer's request.
    if address[1] == 0 or ip.is_unspecified or ip.is_multicast:
        return False
    if ip.version == 4:
        return not ip.is_reserved  # 240.0.0.0/4, which includes the broadcast address
    # Private addresses stay in: both may be in one network, and a ping to a stranger's machine opens nothing.
    return not ip.is_link_local and ip not in _OVERLAY
