"""A peer's paths over time: when to ping which candidate, how to read answers, when to send call-me-maybe.

Lives here: the disco pinger of one peer, driving its candidates and its selector. outstanding_pings.py has the pings in
flight. The endpoint seals messages and knows other peers; this module returns what to send, as values.
Obeys docs/protocol/disco.md, "Hearing" and "Speaking"; departures are marked "Ours". The path MTU is searched as in
RFC 8899 (mtu.py): pings are its probes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from coder.mesh.core.paths.candidates import PROBE_INTERVAL, Address, Candidate, Candidates, Source, usable
from coder.mesh.core.paths.mtu import FLOOR, STANDARD, MtuSearch
from coder.mesh.core.paths.outstanding_pings import OutstandingPings, Purpose, SendPing, SentPing
from coder.mesh.core.paths.selector import Measured, PathState, Selector

# docs/protocol/disco.md#sending. Below any router's timeout for UDP, of which 30 s are the shortest known.
HEARTBEAT = 3.0
"""Seconds between pings of the address in use."""
# Fifteen heartbeats (docs/protocol/disco.md#sending).
SESSION_ACTIVE = 45.0
"""A peer with data sent in the last seconds is kept warm."""
UPGRADE_INTERVAL = 60.0
"""Seconds between searches for a better path while the current one is slow."""
# docs/protocol/disco.md#sending. Below it the gain is less than the differences between measurements.
GOOD_ENOUGH = 0.005
"""A path this fast (seconds) is not worth improving."""
PATIENCE = (0.6, 2.0)
"""Ours: bounds of the wait for a heartbeat's answer before it is repeated, and again before it counts as lost. With a
heartbeat every 3 s a dead path is noticed after at most 4.2 s."""
ECHO_INTERVAL = 1.0
"""Ours: seconds between two pings that answer pings of one candidate."""
NARROW_AFTER = 0.6
"""Ours: seconds the standard ping has before every candidate gets a small one: a narrow path is better than the relay,
and worse than any path of full width that answers first."""
_PROBE_PATIENCE = (0.1, 2.0)
"""Ours: bounds of the wait for a size probe's answer."""


@dataclass(frozen=True, slots=True)
class SendCallMeMaybe:
    """Send our endpoints to the peer by relay, with the news that we are pinging it."""


Action = SendPing | SendCallMeMaybe


@dataclass(frozen=True, slots=True)
class PingAnswered:
    """Answer to a caller's ping."""

    token: int
    latency: float
    to: Address | None
    """Source of the answer; None: by relay."""


class PeerPaths:
    """All paths to a peer, and their state."""

    __slots__ = (
        "_checked",
        "_full_ping_at",
        "_heartbeat_at",
        "_narrow_answered",
        "_narrow_at",
        "_outstanding",
        "_search_at",
        "_suspect",
        "_suspect_at",
        "_suspect_size",
        "candidates",
        "direct",
        "last_send",
        "relay_latency",
        "selector",
    )

    def __init__(self, random: Callable[[int], bytes], *, direct: bool = True) -> None:
        self.candidates = Candidates()
        self.selector = Selector()
        self.direct = direct
        # Only sent data keeps a peer's paths warm; received data does not, as the other side pings for itself.
        self.last_send: float | None = None
        self.relay_latency: float | None = None
        """Round trip of the last pong by relay, seconds."""
        self._full_ping_at: float | None = None
        self._heartbeat_at: float | None = None
        self._outstanding = OutstandingPings(random)
        # The address whose heartbeat is unanswered, its deadline and size, and whether it was repeated.
        self._suspect: Address | None = None
        self._suspect_at = 0.0
        self._suspect_size = STANDARD
        self._checked = False
        self._narrow_answered = False
        self._narrow_at: float | None = None
        self._search_at: float | None = None

    # -- data -------------------------------------------------------------------------------------------------------
    def route(self, now: float) -> tuple[Address | None, bool]:
        """Return (UDP address or None, whether to send by relay too) for data sent now."""
        return self.selector.route(now)

    @property
    def carries(self) -> int:
        """Return the largest datagram, in bytes, that the current address carries; the standard size without one."""
        search = self._search_in_use()
        return STANDARD if search is None else search.carried

    def _search_in_use(self) -> MtuSearch | None:
        best = self.selector.best
        candidate = None if best is None else self.candidates.by_address.get(best.address)
        return None if candidate is None else candidate.mtu

    def trusted(self, now: float) -> bool:
        """Return whether data uses UDP alone."""
        return self.selector.best is not None and self.selector.state is PathState.DIRECT and now < self.selector.until

    def active(self, now: float) -> bool:
        """Return whether data was sent to the peer recently."""
        return self.last_send is not None and now - self.last_send <= SESSION_ACTIVE

    def on_send(self, now: float) -> list[Action]:
        """Record data sent to the peer; called once per batch."""
        self.last_send = now
        if not self.direct:
            return []
        # Paths are kept warm while data flows and no longer: thousands of idle peers cost nothing.
        if self._heartbeat_at is None:
            self._heartbeat_at = now + HEARTBEAT
            search = self._search_in_use()
            if search is not None:
                self._search_at = search.at  # a path the peer found while we had no data
        if self.trusted(now):
            return []
        return self._full_ping(now)

    # -- input from the peer and the coordinator ----------------------------------------------------------------------
    def set_endpoints(self, addresses: Iterable[Address], now: float) -> list[Action]:
        """Set the coordinator's list of the peer's addresses."""
        return self._replace(Source.CONFIGURED, addresses, now)

    def on_call_me_maybe(self, addresses: Iterable[Address], now: float) -> list[Action]:
        """Process a call-me-maybe: the peer lists its addresses by relay and is pinging us; its firewall is open."""
        if not self.direct:
            return []
        # The actions are dropped: they would call back, and two nodes would call each other for ever
        # (docs/protocol/disco.md#receiving). The list replaces the last one: see docs/protocol/disco.md#receiving.
        self._replace(Source.CALLED, addresses, now)
        # The peer's own pings hold its firewall open for a moment only: ping all addresses immediately, without the
        # throttle (docs/protocol/disco.md#receiving).
        self.candidates.unthrottle()
        self._full_ping_at = now
        return self._ping_candidates(now)

    def on_ping(self, source: Address, now: float, size: int = STANDARD) -> list[Action]:
        """Process a ping of the peer from this UDP address, a datagram of `size` bytes."""
        self.candidates.heard(source, now)
        candidate = self.candidates.by_address.get(source)
        # No data for it, or a path that works: no pings are needed.
        if candidate is None or not self.active(now) or self.trusted(now):
            return []
        if candidate.last_echo is not None and now < candidate.last_echo + ECHO_INTERVAL:
            return []
        # Ours: the peer's ping has just opened its firewall towards us, while our own may have closed there. A ping of
        # ours gets through now; upstream waits for the next round, up to five seconds.
        if not self.candidates.may_ping(candidate, now):
            return []
        candidate.last_echo = now
        return [self._ping(source, now, candidate=candidate, size=max(min(size, STANDARD), FLOOR))]

    def on_pong(self, tx: bytes, source: Address | None, now: float, size: int = 0) -> PingAnswered | bool:
        """Process a pong of `size` bytes (0: as the ping).

        Return False without a ping, PingAnswered for a caller's ping.
        """
        sent = self._outstanding.take(tx)
        # Pinged by relay and answered by UDP, or the other way round: that proves neither path. `source` itself is not
        # compared: a router may send the answer by another address of its own.
        if sent is None or (sent.to is None) != (source is None):
            return False
        # From the moment of our ping. The peer's clock is not used.
        latency = now - sent.at
        if sent.to is None:
            self.relay_latency = latency
        else:
            self._answered(sent, latency, now, mirrored=size in (0, sent.size))
        if sent.purpose.token:
            return PingAnswered(sent.purpose.token, latency, sent.to)
        return True

    def _answered(self, sent: SentPing, latency: float, now: float, *, mirrored: bool) -> None:
        address = sent.to
        candidate = self.candidates.by_address.get(address) if address is not None else None
        if candidate is None or address is None:
            return  # withdrawn while the ping was in flight
        candidate.latency = latency
        best = self.selector.best
        search = candidate.mtu
        if search is None or best is None or best.address != address:
            # The size it carried when it was last in use proves nothing now.
            search = candidate.mtu = MtuSearch(min(sent.size, STANDARD), now)
        search.answered(sent.size, now, mirrored=mirrored)
        self.selector.on_pong(Measured(address, latency, min(search.carried, STANDARD)), now)
        if self.selector.best is not None and self.selector.best.address == address:
            self._search_at = search.at
        if self._suspect == address:
            if sent.size >= self._suspect_size:
                self._suspect = None
            else:
                # Alive, yet for less than the data: `_repeat_heartbeat` reports a black hole if the large ping is lost.
                self._narrow_answered = True

    def on_sending_failed(self, address: Address, now: float) -> list[Action]:
        """Handle the operating system's refusal to send to this address: unreachable, or the datagram is too large."""
        was = self.selector.state
        # The kernel reports at once what a timeout would show in seconds.
        self.selector.on_sending_failed(address, now)
        best, search = self.selector.best, self._search_in_use()
        # Once for each doubt: a socket that refuses everything would make us ping with each packet.
        if was is not PathState.DIRECT or best is None or best.address != address or search is None:
            return []
        size = search.carried
        search.on_black_hole(now)
        return [self._ping(address, now, size=FLOOR), self._ping(address, now, size=min(size, STANDARD))]

    def on_ping_refused(self, tx: bytes, now: float) -> None:
        """Handle an operating system's refusal to send this ping: too large, or unreachable."""
        sent = self._outstanding.take(tx)
        if sent is None or sent.to is None:
            return
        candidate = self.candidates.by_address.get(sent.to)
        if candidate is not None and candidate.mtu is not None:
            candidate.mtu.refused(sent.size, now)
            if self._search_in_use() is candidate.mtu:
                self._search_at = candidate.mtu.at

    def ping_again(self, now: float) -> list[Action]:
        """Ping again after the relay is back: recent messages through it may not have arrived."""
        if not self.direct or self.trusted(now):
            return []
        self.candidates.unthrottle()
        return self._full_ping(now)

    def reset(self) -> None:
        """Reset all measurements: our own addresses changed."""
        self.selector = Selector()
        self.relay_latency = None
        # Candidates stay: the peer's addresses do not depend on ours.
        self._full_ping_at = self._suspect = self._search_at = self._narrow_at = None
        # An answer in flight is for an address that may not be ours any more.
        self._outstanding.clear()
        self.candidates.unthrottle()
        for candidate in self.candidates:
            candidate.mtu = None

    # -- pings of callers ---------------------------------------------------------------------------------------
    def ask(self, token: int, now: float) -> list[Action]:
        """Ping the peer for a caller: by the current path when trusted, else by relay and every candidate."""
        # One token for all of them: the caller gets each answer, with its path.
        purpose = Purpose(token=token)
        best = self.selector.best
        if best is not None and self.trusted(now):
            return [self._ping(best.address, now, purpose, size=min(self.carries, STANDARD))]
        # By relay in any case: the caller gets an answer from a peer that no direct path reaches, too.
        actions: list[Action] = [self._ping(None, now, purpose)]
        if self.direct:
            actions += [self._ping(c.address, now, purpose, c) for c in self._affordable(self.candidates.due(now), now)]
        return actions

    # -- time -------------------------------------------------------------------------------------------------------
    def on_timer(self, now: float) -> list[Action]:
        """Run all expired timers."""
        self._outstanding.forget_lost(now)
        actions: list[Action] = []
        if self._suspect is not None and now >= self._suspect_at:
            actions += self._repeat_heartbeat(self._suspect, now)
        before = self.selector.state
        self.selector.on_timer(now)
        # At the moment trust ends, without waiting for data: data sent meanwhile goes twice.
        if before is PathState.DIRECT and self.selector.state is PathState.DOUBTFUL and self.active(now):
            actions += self._full_ping(now)
        if self._heartbeat_at is not None and now >= self._heartbeat_at:
            actions += self._heartbeat(now)
        if self._narrow_at is not None and now >= self._narrow_at:
            actions += self._ping_narrow(now)
        if self._search_at is not None and now >= self._search_at:
            actions += self._search(now)
        return actions

    def next_wake(self) -> float | None:
        """Return when `on_timer` is due; None when the peer may sleep."""
        times = [
            self._heartbeat_at,
            self.selector.next_wake(),
            self._suspect_at if self._suspect else None,
            self._narrow_at,
            self._search_at,
            self._outstanding.next_loss(),
        ]
        return min((at for at in times if at is not None), default=None)

    def _heartbeat(self, now: float) -> list[Action]:
        # No data is in flight that a broken path could hold up; the next data starts with pings again.
        if not self.active(now):
            self._heartbeat_at = self._search_at = None
            return []
        self._heartbeat_at = now + HEARTBEAT
        actions: list[Action] = []
        best = self.selector.best
        if best is not None:
            # As large as the data: a path that has become too narrow for it is as good as dead.
            actions.append(self._ping(best.address, now, Purpose(heartbeat=True), size=self.carries))
            if self._suspect is None:
                # One doubt at a time: a second heartbeat adds nothing to the verdict.
                self._suspect, self._suspect_size = best.address, self.carries
                self._checked = self._narrow_answered = False
                self._suspect_at = now + self._patience(best)
        if self._is_full_ping_due(now):
            actions += self._full_ping(now)
        return actions

    def _repeat_heartbeat(self, address: Address, now: float) -> list[Action]:
        """Handle a heartbeat without an answer: repeat it once, then stop trusting the address."""
        best = self.selector.best
        if best is None or best.address != address:
            self._suspect = None
            return []
        if not self._checked:
            self._checked = True
            self._suspect_at = now + self._patience(best)
            again = Purpose(heartbeat=True)
            # A small ping with it distinguishes a dead path from a narrowed one.
            sizes = {self._suspect_size, FLOOR}
            return [self._ping(address, now, again, size=size) for size in sorted(sizes, reverse=True)]
        self._suspect = None
        search = self._search_in_use()
        if self._narrow_answered and search is not None:
            search.on_black_hole(now)
            return self._search(now)
        self.selector.on_heartbeat_lost(address, now)
        return self._full_ping(now)

    @staticmethod
    def _patience(best: Measured) -> float:
        # Four round trips: a queue on the way may double one, and a wrong verdict costs a detour by the relay.
        return min(max(PATIENCE[0], 4 * best.latency), PATIENCE[1])

    def _is_full_ping_due(self, now: float) -> bool:
        best = self.selector.best
        if best is None or self._full_ping_at is None or not self.trusted(now):
            return True
        # A narrow path is never good enough, however fast: there may be a wide one.
        is_good = best.latency <= GOOD_ENOUGH and best.carries >= STANDARD
        return not is_good and now - self._full_ping_at >= UPGRADE_INTERVAL

    # -- what a path carries ------------------------------------------------------------------------------------------
    def _ping_narrow(self, now: float) -> list[Action]:
        """Ping all candidates with small pings: no standard ping was answered yet."""
        self._narrow_at = None
        if self.trusted(now):
            return []
        # Only candidates pinged in this round: others may be silent because they were not pinged.
        pinged = [c for c in self.candidates if c.last_ping is not None and now - c.last_ping < PROBE_INTERVAL]
        return [self._ping(c.address, now, size=FLOOR) for c in self._affordable(pinged, now)]

    def _search(self, now: float) -> list[Action]:
        """Probe the next size on the current address; an answer from it restarts the search."""
        self._search_at = None
        best, search = self.selector.best, self._search_in_use()
        if best is None or search is None or not self.trusted(now) or not self.active(now):
            return []
        patience = min(max(_PROBE_PATIENCE[0], 4 * best.latency), _PROBE_PATIENCE[1])
        size = search.due(now, patience)
        self._search_at = search.at
        return [] if size is None else [self._ping(best.address, now, size=size)]

    # -- sending ----------------------------------------------------------------------------------------------------
    def _full_ping(self, now: float) -> list[Action]:
        # Here rather than by its own timer: an address that is not about to be pinged may be as old as it likes.
        for address in self.candidates.expire(now):
            self.selector.on_withdrawn(address, now)
        self._full_ping_at = now
        actions = self._ping_candidates(now)
        # Without a ping of our own in flight the peer's ping would meet a closed firewall: no ping, no call.
        if actions:
            actions.append(SendCallMeMaybe())
        return actions

    def _ping_candidates(self, now: float) -> list[Action]:
        if self._narrow_at is None and not self.trusted(now):
            self._narrow_at = now + NARROW_AFTER
        return [self._ping(c.address, now, candidate=c) for c in self._affordable(self.candidates.due(now), now)]

    def _affordable(self, candidates: list[Candidate], now: float) -> list[Candidate]:
        return [c for c in candidates if self.candidates.may_ping(c, now)]

    def _ping(
        self,
        to: Address | None,
        now: float,
        purpose: Purpose = Purpose(),  # noqa: B008 - immutable
        candidate: Candidate | None = None,
        size: int = STANDARD,
    ) -> SendPing:
        if candidate is not None:
            candidate.last_ping = now
        return self._outstanding.begin(to, now, purpose, size)

    def _replace(self, source: Source, addresses: Iterable[Address], now: float) -> list[Action]:
        before = set(self.candidates.by_address)
        usable_addresses = [address for address in addresses if usable(address)]
        for address in self.candidates.replace(source, usable_addresses):
            self.selector.on_withdrawn(address, now)
        if not self.direct or not self.active(now) or self.trusted(now):
            return []
        # Ours: while data waits on the relay, a new candidate is pinged as soon as it is known. The others wait for the
        # next full ping, as always.
        fresh = self._affordable([c for c in self.candidates if c.address not in before], now)
        actions: list[Action] = [self._ping(c.address, now, candidate=c) for c in fresh]
        if actions:
            actions.append(SendCallMeMaybe())
        return actions
