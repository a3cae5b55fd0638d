"""Network check: the nearest relay, and our own endpoints.

Lives here: the decisions. The drivers measure (HTTP, STUN) and report here.
Obeys docs/protocol/stun.md: home by the best latency of five minutes with hysteresis, endpoint order, and the fork's
rule that latencies come from HTTP, not from STUN.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.derpmap import DerpMap

# As long as the pause between complete reports.
HISTORY = 300.0
"""Seconds of latency reports that count."""
# docs/protocol/stun.md: five minutes between reports of all regions.
FULL_REPORT_INTERVAL = 300.0
# Many routers drop an idle UDP mapping after thirty seconds, whatever RFC 4787 section 4.3 requires of them;
# randomized, so that nodes behind one router do not ask in lockstep.
RESTUN_INTERVAL = (20.0, 26.0)
"""Seconds between STUN rounds while peers are active."""
# A second more than the longest pause between rounds: while peers are active nothing is asked twice.
ENDPOINTS_FRESH = 27.0
"""Own endpoints older than this are measured again before a call-me-maybe."""
# docs/protocol/stun.md. Peers learn of a move from the coordinator, later than it happens: the gain has to be worth it.
KEEP_MARGIN = 0.010
KEEP_RATIO = 2 / 3


@dataclass(frozen=True, slots=True)
class _Report:
    at: float
    latencies: Mapping[int, float]


class HomeChooser:
    """Stores latency reports and chooses the home region."""

    __slots__ = ("_reports", "home")

    def __init__(self) -> None:
        # Five minutes of them; the newest is the last.
        self._reports: deque[_Report] = deque()
        self.home = 0
        """0: none chosen yet."""

    def latencies(self) -> Mapping[int, float]:
        """Return the seconds per region of the last report."""
        return self._reports[-1].latencies if self._reports else {}

    def on_report(self, derp_map: DerpMap, latencies: Mapping[int, float], now: float, seed: int) -> int:
        """Record one round of measurements (seconds per region that answered) and return the home region.

        `seed` chooses a region when nothing was ever measured; the same seed chooses the same region. Such a home is
        left like any other: immediately when it did not answer, else for a region that is nearer by a margin.
        """
        while self._reports and now - self._reports[0].at > HISTORY:
            self._reports.popleft()
        self._reports.append(_Report(now, dict(latencies)))
        # From the current map: a measurement of a removed region, or one to be avoided, chooses nothing.
        regions = {region.region_id for region in derp_map.relay_regions()}
        answered = {r: self._score(derp_map, r) for r in latencies if r in regions}
        if answered:
            self.home = self._choose(derp_map, answered, latencies)
        # No region answered, which says more about our network than about the relay: the home stays.
        elif self.home not in regions:
            self.home = pick_unmeasured(derp_map, seed)
        return self.home

    def _score(self, derp_map: DerpMap, region: int) -> float:
        # The best of five minutes: one busy moment of a relay must not move a node.
        best = min(report.latencies[region] for report in self._reports if region in report.latencies)
        return best * _factor(derp_map, region)

    def _choose(self, derp_map: DerpMap, answered: Mapping[int, float], latencies: Mapping[int, float]) -> int:
        # By number where equal, so that nodes in one place choose alike.
        best = min(answered, key=lambda region: (answered[region], region))
        old = self.home
        if old == best or old not in answered:
            return best
        # The old home by this report, its rivals by their best: a home that has become slow is noticed immediately, and
        # a rival's one good moment is five minutes old at most.
        current = latencies[old] * _factor(derp_map, old)
        # Both margins: ten milliseconds matter little on a far relay, a third little on a near relay.
        clearly = current - answered[best] >= KEEP_MARGIN and answered[best] <= current * KEEP_RATIO
        return best if clearly else old


def _factor(derp_map: DerpMap, region: int) -> float:
    score = derp_map.region_score.get(region, 0.0)
    return score if score > 0 else 1.0


def pick_unmeasured(derp_map: DerpMap, seed: int) -> int:
    """Return a region chosen without measurements, spread over nodes by their seed; 0 when no region relays.

    Ours: the embedded relay where there is one, because a node with the map has reached its server.
    """
    regions = derp_map.relay_regions()
    # Without a measurement the map is a better guess than chance.
    regions = [region for region in regions if region.embedded_relay] or regions
    return regions[seed % len(regions)].region_id if regions else 0


class Mappings:
    """Our addresses as STUN servers saw them."""

    __slots__ = ("_at", "_seen")

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], Address] = {}
        self._at: float | None = None

    def start_round(self) -> None:
        """Forget the last round."""
        # Answers of different rounds may be from different networks, and would look like a mapping that varies.
        self._seen.clear()

    def on_answer(self, server: Address, observed: Address, now: float) -> bool:
        """Record a server's answer; return whether the address is new."""
        news = observed not in self._seen.values()
        # The last answer of each server: it may have been asked again after our network changed.
        self._seen[server] = observed
        self._at = now
        return news

    def fresh(self, now: float) -> bool:
        """Return whether the last answer is recent enough to publish it to peers."""
        return self._at is not None and now - self._at < ENDPOINTS_FRESH

    @property
    def udp_works(self) -> bool:
        """Return whether any server answered."""
        return bool(self._seen)

    @property
    def answers(self) -> int:
        """Return how many servers answered."""
        return len(self._seen)

    @property
    def varies(self) -> bool | None:
        """Return whether our IPv4 mapping depends on the destination; None with fewer than two servers."""
        # RFC 4787 section 4.1. Where the mapping depends on the destination, the address a STUN server saw is of no use
        # to a peer. IPv6 is left out: it is hardly ever translated.
        seen = [address for server, address in self._seen.items() if ":" not in server[0]]
        return None if len(seen) < 2 else len(set(seen)) > 1

    def observed(self) -> list[Address]:
        """Return each address once, IPv4 first."""
        # Servers mostly agree; each address is published once.
        unique = dict.fromkeys(self._seen.values())
        return sorted(unique, key=lambda address: ":" in address[0])


def own_endpoints(
    observed: Iterable[Address],
    local: Iterable[str],
    port4: int,
    port6: int,
    *,
    mapped: Address | None = None,
    limit: int = 32,
) -> list[Address]:
    """Return the endpoints to publish, each once.

    The order: the mapped port of the router, STUN addresses, STUN IPv4 with the local port, local addresses. Ports are
    those of the sockets, 0 when the family has none. A loopback address is published only when the machine has no
    other, as upstream does.
    """
    observed = list(observed)
    # The router's mapping first: that port is open to all senders.
    endpoints: dict[Address, None] = dict.fromkeys([mapped, *observed] if mapped else observed)
    # An administrator who forwarded our port kept its number, and STUN cannot see that.
    if port4:
        endpoints.update(dict.fromkeys((ip, port4) for ip, _ in observed if ":" not in ip))
    locals_ = list(local)
    loopback = [ip for ip in locals_ if ip == "::1" or ip.startswith("127.")]
    others = [ip for ip in locals_ if ip not in loopback]
    for ip in others or loopback:
        port = port6 if ":" in ip else port4
        if port:
            endpoints[ip, port] = None
    # The order above is that of usefulness, so the cut removes the least helpful.
    return list(endpoints)[:limit]
