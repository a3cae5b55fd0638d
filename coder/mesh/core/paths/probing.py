"""One peer's paths over time: when to ping which candidate, what answers mean, when to ask the peer to call.

Lives here: the disco pinger of one peer, driving its candidates and its selector. Sealing messages and knowing other
peers is the endpoint's business; this module says what should be sent, as values.
Obeys derp-disco-stun.md sections 5.2 and 5.3; departures are marked "Ours".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from coder.mesh.core.paths.candidates import Address, Candidate, Candidates, Source, usable
from coder.mesh.core.paths.selector import Measured, Selector, State

HEARTBEAT = 3.0
"""Seconds between pings of the address in use."""
SESSION_ACTIVE = 45.0
"""A peer we sent to this lately is kept warm."""
UPGRADE_INTERVAL = 60.0
"""How often to look for something better while the path in use is slow."""
PING_TIMEOUT = 5.0
GOOD_ENOUGH = 0.005
"""A path this fast (seconds) is not worth improving."""
PATIENCE = (0.6, 2.0)
"""Ours: bounds of the wait for a heartbeat's answer before it is repeated, and again before it counts as lost. With a
heartbeat every 3 s a dead path is noticed after at most 4.2 s."""
ECHO_INTERVAL = 1.0
"""Ours: seconds between two pings that answer pings of one candidate."""
MAX_OUTSTANDING = 256
"""Ours: bounds the memory of pings in flight; more candidates than this are never pinged within one timeout."""

TX_SIZE = 12


class Purpose(NamedTuple):
    """Why a ping was sent."""

    heartbeat: bool = False
    token: int = 0
    """Not 0: a person or program waits for this answer."""


@dataclass(frozen=True, slots=True)
class SendPing:
    """Send a disco ping; to a UDP address, or by relay when it is None."""

    to: Address | None
    tx: bytes


@dataclass(frozen=True, slots=True)
class SendCallMeMaybe:
    """Tell the peer by relay where we are and that we are pinging it."""


Action = SendPing | SendCallMeMaybe


@dataclass(frozen=True, slots=True)
class PingAnswered:
    """The answer to a ping somebody waited for."""

    token: int
    latency: float
    to: Address | None
    """None: it came by relay."""


@dataclass(slots=True)
class _Outstanding:
    to: Address | None
    at: float
    purpose: Purpose


class PeerPaths:
    """Everything about how packets reach one peer."""

    __slots__ = (
        "_checked",
        "_full_ping_at",
        "_heartbeat_at",
        "_outstanding",
        "_random",
        "_suspect",
        "_suspect_at",
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
        self.last_send: float | None = None
        self.relay_latency: float | None = None
        """Round trip of the last pong by relay, seconds."""
        self._random = random
        self._full_ping_at: float | None = None
        self._heartbeat_at: float | None = None
        self._outstanding: dict[bytes, _Outstanding] = {}
        self._suspect: Address | None = None
        self._suspect_at = 0.0
        self._checked = False

    # -- data -------------------------------------------------------------------------------------------------------
    def route(self, now: float) -> tuple[Address | None, bool]:
        """(UDP address or None, whether to send by relay too) for data sent now."""
        return self.selector.route(now)

    def trusted(self, now: float) -> bool:
        """Whether data goes by UDP alone."""
        return self.selector.best is not None and self.selector.state is State.DIRECT and now < self.selector.until

    def active(self, now: float) -> bool:
        """Whether data was sent to the peer lately."""
        return self.last_send is not None and now - self.last_send <= SESSION_ACTIVE

    def on_send(self, now: float) -> list[Action]:
        """Data is being sent to the peer; call once per batch."""
        self.last_send = now
        if not self.direct:
            return []
        if self._heartbeat_at is None:
            self._heartbeat_at = now + HEARTBEAT
        if self.trusted(now):
            return []
        return self._full_ping(now)

    # -- what the peer and the coordinator say ----------------------------------------------------------------------
    def set_endpoints(self, addresses: Iterable[Address], now: float) -> list[Action]:
        """The coordinator's list of the peer's addresses."""
        return self._replace(Source.CONFIGURED, addresses, now)

    def on_call_me_maybe(self, addresses: Iterable[Address], now: float) -> list[Action]:
        """The peer listed its addresses by relay and is pinging us: its firewall is open now."""
        if not self.direct:
            return []
        self._replace(Source.CALLED, addresses, now)
        self.candidates.unthrottle()
        self._full_ping_at = now
        return self._ping_candidates(now)

    def on_ping(self, source: Address, now: float) -> list[Action]:
        """The peer pinged us from this UDP address."""
        self.candidates.heard(source, now)
        candidate = self.candidates.by_address.get(source)
        if candidate is None or not self.active(now) or self.trusted(now):
            return []
        if candidate.last_echo is not None and now < candidate.last_echo + ECHO_INTERVAL:
            return []
        # Ours: the peer's ping has just opened its firewall towards us, while our own may have died there. A ping of
        # ours gets through now; upstream waits for the next round, up to five seconds.
        candidate.last_echo = now
        return [self._ping(source, now, candidate=candidate)]

    def on_pong(self, tx: bytes, source: Address | None, now: float) -> PingAnswered | bool:
        """A pong: False when nobody asked, PingAnswered when somebody waits for it, else True."""
        sent = self._outstanding.pop(tx, None)
        if sent is None or (sent.to is None) != (source is None):
            return False
        latency = now - sent.at
        if sent.to is None:
            self.relay_latency = latency
        else:
            self._answered(sent.to, latency, now)
        if sent.purpose.token:
            return PingAnswered(sent.purpose.token, latency, sent.to)
        return True

    def _answered(self, address: Address, latency: float, now: float) -> None:
        candidate = self.candidates.by_address.get(address)
        if candidate is None:
            return  # withdrawn while the ping was in flight
        candidate.latency = latency
        self.selector.on_pong(Measured(address, latency), now)
        if self._suspect == address:
            self._suspect = None

    def on_sending_failed(self, address: Address, now: float) -> None:
        """The operating system refused to send to this address."""
        self.selector.on_sending_failed(address, now)

    def reset(self) -> None:
        """Our own addresses changed: nothing measured before holds any longer."""
        self.selector = Selector()
        self.relay_latency = None
        self._full_ping_at = self._suspect = None
        self._outstanding.clear()
        self.candidates.unthrottle()

    # -- pings somebody waits for ---------------------------------------------------------------------------------
    def ask(self, token: int, now: float) -> list[Action]:
        """Ping the peer for a caller: by the path in use when trusted, else by relay and every candidate."""
        purpose = Purpose(token=token)
        best = self.selector.best
        if best is not None and self.trusted(now):
            return [self._ping(best.address, now, purpose)]
        actions: list[Action] = [self._ping(None, now, purpose)]
        if self.direct:
            actions += [self._ping(c.address, now, purpose, c) for c in self.candidates.due(now)]
        return actions

    # -- time -------------------------------------------------------------------------------------------------------
    def on_timer(self, now: float) -> list[Action]:
        """Do what is due."""
        self._forget_lost_pings(now)
        actions: list[Action] = []
        if self._suspect is not None and now >= self._suspect_at:
            actions += self._chase(self._suspect, now)
        before = self.selector.state
        self.selector.on_timer(now)
        if before is State.DIRECT and self.selector.state is State.DOUBTFUL and self.active(now):
            actions += self._full_ping(now)
        if self._heartbeat_at is not None and now >= self._heartbeat_at:
            actions += self._heartbeat(now)
        return actions

    def next_wake(self) -> float | None:
        """When `on_timer` has something to do; None when the peer may sleep."""
        times = [self._heartbeat_at, self.selector.next_wake(), self._suspect_at if self._suspect else None]
        if self._outstanding:
            times.append(next(iter(self._outstanding.values())).at + PING_TIMEOUT)
        return min((at for at in times if at is not None), default=None)

    def _heartbeat(self, now: float) -> list[Action]:
        if not self.active(now):
            self._heartbeat_at = None
            return []
        self._heartbeat_at = now + HEARTBEAT
        actions: list[Action] = []
        best = self.selector.best
        if best is not None:
            actions.append(self._ping(best.address, now, Purpose(heartbeat=True)))
            if self._suspect is None:
                self._suspect, self._checked = best.address, False
                self._suspect_at = now + self._patience(best)
        if self._wants_full_ping(now):
            actions += self._full_ping(now)
        return actions

    def _chase(self, address: Address, now: float) -> list[Action]:
        """A heartbeat was not answered in time: once more, then stop trusting the address."""
        best = self.selector.best
        if best is None or best.address != address:
            self._suspect = None
            return []
        if not self._checked:
            self._checked = True
            self._suspect_at = now + self._patience(best)
            return [self._ping(address, now, Purpose(heartbeat=True))]
        self._suspect = None
        self.selector.on_heartbeat_lost(address, now)
        return self._full_ping(now)

    @staticmethod
    def _patience(best: Measured) -> float:
        return min(max(PATIENCE[0], 4 * best.latency), PATIENCE[1])

    def _wants_full_ping(self, now: float) -> bool:
        best = self.selector.best
        if best is None or self._full_ping_at is None or not self.trusted(now):
            return True
        return best.latency > GOOD_ENOUGH and now - self._full_ping_at >= UPGRADE_INTERVAL

    # -- sending ----------------------------------------------------------------------------------------------------
    def _full_ping(self, now: float) -> list[Action]:
        for address in self.candidates.expire(now):
            self.selector.on_withdrawn(address, now)
        self._full_ping_at = now
        actions = self._ping_candidates(now)
        # Without a ping of our own in flight the peer's ping would meet a closed firewall: nothing sent, no call.
        if actions:
            actions.append(SendCallMeMaybe())
        return actions

    def _ping_candidates(self, now: float) -> list[Action]:
        return [self._ping(c.address, now, candidate=c) for c in self.candidates.due(now)]

    def _ping(
        self,
        to: Address | None,
        now: float,
        purpose: Purpose = Purpose(),  # noqa: B008 - immutable
        candidate: Candidate | None = None,
    ) -> SendPing:
        tx = self._random(TX_SIZE)
        if len(self._outstanding) >= MAX_OUTSTANDING:
            del self._outstanding[next(iter(self._outstanding))]
        self._outstanding[tx] = _Outstanding(to, now, purpose)
        if candidate is not None:
            candidate.last_ping = now
        return SendPing(to, tx)

    def _forget_lost_pings(self, now: float) -> None:
        while self._outstanding:
            tx, sent = next(iter(self._outstanding.items()))
            if now < sent.at + PING_TIMEOUT:  # the very sum next_wake announced, or rounding would spin
                return
            del self._outstanding[tx]

    def _replace(self, source: Source, addresses: Iterable[Address], now: float) -> list[Action]:
        before = set(self.candidates.by_address)
        wanted = [address for address in addresses if usable(address)]
        for address in self.candidates.replace(source, wanted):
            self.selector.on_withdrawn(address, now)
        if not self.direct or not self.active(now) or self.trusted(now):
            return []
        # Ours: while data waits on the relay, a new candidate is tried as soon as it is known.
        fresh = [c for c in self.candidates if c.address not in before]
        actions: list[Action] = [self._ping(c.address, now, candidate=c) for c in fresh]
        if actions:
            actions.append(SendCallMeMaybe())
        return actions
