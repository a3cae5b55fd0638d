"""Path selection of a peer's data: relay, one UDP address, or both; a table and its scoring.

Lives here: the decision. Pings and their times are `probing.py`'s; the candidates are `candidates.py`'s.
Obeys docs/protocol/disco.md, "Speaking". Three choices are ours, each marked below: an untrusted address yields to any
that answers, doubt ends in the relay alone, and an unanswered heartbeat withdraws trust early.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.mtu import STANDARD

# Two heartbeats of three seconds and half a second for the answer: one lost ping does not end it.
TRUST = 6.5
"""Seconds for which a pong makes its address trusted."""
DOUBT = 10.0
"""Ours: seconds for which data is sent twice, by relay and to the silent address, before that address is given up.
Longer than one probe interval, so that the address gets a second chance; finite, because a dead address would double a
bulk transfer for ever."""


class PathState(Enum):
    """Path of the data to a peer."""

    RELAYED = "relayed"
    """No UDP address is known to work: relay only."""
    # The only state in which the relay carries nothing.
    DIRECT = "direct"
    """A UDP address answered recently: UDP only."""
    DOUBTFUL = "doubtful"
    """The UDP address has gone silent: both."""


class PathEvent(Enum):
    """Events of a path."""

    PONG_FROM_BEST = "pong from best"
    PONG_FROM_BETTER = "pong from better"
    PONG_FROM_WORSE = "pong from worse"
    TRUST_ENDED = "trust ended"
    DOUBT_ENDED = "doubt ended"
    HEARTBEAT_LOST = "heartbeat lost"
    SENDING_FAILED = "sending failed"
    BEST_WITHDRAWN = "best withdrawn"


class Step(NamedTuple):
    """Effect of an event."""

    to: PathState
    adopt: bool = False
    """The address that answered becomes the best address."""
    trust: bool = False
    """Trust restarts now."""
    forget: bool = False
    """There is no best address any longer."""


_R, _D, _Q = PathState.RELAYED, PathState.DIRECT, PathState.DOUBTFUL

TABLE: dict[tuple[PathState, PathEvent], Step] = {
    # The only transition out of the relay. Without a best address any answer is better.
    (_R, PathEvent.PONG_FROM_BETTER): Step(_D, adopt=True, trust=True),
    (_D, PathEvent.PONG_FROM_BEST): Step(_D, trust=True),
    (_D, PathEvent.PONG_FROM_BETTER): Step(_D, adopt=True, trust=True),
    # No new trust for the best address: another address answered.
    (_D, PathEvent.PONG_FROM_WORSE): Step(_D),
    # The address is not given up yet: data goes both ways until it answers or doubt ends.
    (_D, PathEvent.TRUST_ENDED): Step(_Q),
    # Ours: trust alone would leave a broken path in use for up to 6.5 s; two unanswered pings are proof enough.
    (_D, PathEvent.HEARTBEAT_LOST): Step(_Q),
    (_D, PathEvent.SENDING_FAILED): Step(_Q),
    # Straight to the relay: the peer itself withdrew the address.
    (_D, PathEvent.BEST_WITHDRAWN): Step(_R, forget=True),
    (_Q, PathEvent.PONG_FROM_BEST): Step(_D, trust=True),
    (_Q, PathEvent.PONG_FROM_BETTER): Step(_D, adopt=True, trust=True),
    # Ours: an address that answers beats a silent one, whatever its score.
    (_Q, PathEvent.PONG_FROM_WORSE): Step(_D, adopt=True, trust=True),
    # Doubt does not restart: its end counts from the first silence.
    (_Q, PathEvent.HEARTBEAT_LOST): Step(_Q),
    (_Q, PathEvent.SENDING_FAILED): Step(_Q),
    # Forgotten: on the relay any answer has to count as better, this address's, too.
    (_Q, PathEvent.DOUBT_ENDED): Step(_R, forget=True),
    (_Q, PathEvent.BEST_WITHDRAWN): Step(_R, forget=True),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """An address and the round trip it answered with, seconds."""

    address: Address
    latency: float
    carries: int = STANDARD
    """Bytes of the largest datagram it is known to carry, at most the standard size."""


@lru_cache(maxsize=4096)
def address_points(ip: str) -> int:
    """Return an address's points apart from its speed: loopback 50, private 20, IPv6 10 more."""
    parsed = ip_address(ip)
    # In the unit of `is_better`, one point a per cent: a private address keeps its place against one that is up to a
    # fifth faster.
    points = 50 if parsed.is_loopback else 20 if _is_private(ip) else 0
    return points + (10 if parsed.version == 6 else 0)


def _is_private(ip: str) -> bool:
    # RFC 1918 and RFC 4193 only, as upstream counts; ipaddress's is_private includes documentation ranges and more.
    if ":" in ip:
        return ip_address(ip).packed[0] & 0xFE == 0xFC
    packed = ip_address(ip).packed
    return packed[0] == 10 or (packed[0] == 172 and packed[1] & 0xF0 == 16) or (packed[0] == 192 and packed[1] == 168)


def is_better(new: Measured, old: Measured) -> bool:
    """Return whether `new` should replace `old`: more points, and a lead of one point is no reason.

    Ours: an address that carries whole packets beats one that does not, however fast.
    """
    if new.address == old.address:
        return False
    # A fast path that cuts every packet in two loses more than it gains.
    if new.carries != old.carries:
        return new.carries > old.carries
    new_points, old_points = address_points(new.address[0]), address_points(old.address[0])
    if new.latency > old.latency > 0:
        # One point for each per cent the other is slower: with ten points for IPv6, ten per cent are not worth a
        # change.
        old_points += int(100 - old.latency * 100 / new.latency)
    elif old.latency > new.latency > 0:
        new_points += int(100 - new.latency * 100 / old.latency)
    # One per cent is noise of the measurement, and every change costs the data in flight on the old path.
    if new_points <= 1 and old_points == 0:
        return False
    return new_points > old_points


class Selector:
    """The path of a peer. Read `state`, `best` and `until`; feed it events."""

    __slots__ = ("best", "changed_at", "state", "until")

    def __init__(self) -> None:
        self.state = PathState.RELAYED
        # None in RELAYED and only there: the table's `forget` keeps it so.
        self.best: Measured | None = None
        self.until = 0.0
        """End of trust (DIRECT) or doubt (DOUBTFUL)."""
        # For people: how long the path has been what it is.
        self.changed_at = 0.0

    def route(self, now: float) -> tuple[Address | None, bool]:
        """Return (UDP address or None, whether the relay carries the data too)."""
        # Data is sent before timers run: between the end of trust and the timer that notices it, both ways are used.
        best = self.best
        if best is None:
            return None, True
        return best.address, self.state is PathState.DOUBTFUL or now >= self.until

    def on_pong(self, answer: Measured, now: float) -> None:
        """Record an answered ping to this address."""
        best = self.best
        if best is None or is_better(answer, best):
            event = PathEvent.PONG_FROM_BETTER
        elif answer.address == best.address:
            event = PathEvent.PONG_FROM_BEST
        else:
            event = PathEvent.PONG_FROM_WORSE
        self._apply(event, now, answer)

    def on_heartbeat_lost(self, address: Address, now: float) -> None:
        """Record two unanswered pings in a row to this address."""
        if self.best is not None and self.best.address == address:
            self._apply(PathEvent.HEARTBEAT_LOST, now)

    def on_sending_failed(self, address: Address, now: float) -> None:
        """Record that the operating system refused to send there."""
        if self.best is not None and self.best.address == address:
            self._apply(PathEvent.SENDING_FAILED, now)

    def on_withdrawn(self, address: Address, now: float) -> None:
        """Record that the peer no longer lists this address."""
        if self.best is not None and self.best.address == address:
            self._apply(PathEvent.BEST_WITHDRAWN, now)

    def on_timer(self, now: float) -> None:
        """Expire trust and doubt."""
        if self.best is not None and now >= self.until:
            self._apply(PathEvent.TRUST_ENDED if self.state is PathState.DIRECT else PathEvent.DOUBT_ENDED, now)

    def next_wake(self) -> float | None:
        """Return when `on_timer` is due."""
        return None if self.best is None else self.until

    def _apply(self, event: PathEvent, now: float, answer: Measured | None = None) -> None:
        step = TABLE[self.state, event]
        if step.forget:
            self.best = None
        elif (step.adopt or event is PathEvent.PONG_FROM_BEST) and answer is not None:
            self.best = answer
        # From the answer's arrival, not from the ping's time: a slow path is not trusted for less.
        if step.trust:
            self.until = now + TRUST
        # On entering only: see the table.
        elif step.to is PathState.DOUBTFUL and self.state is not PathState.DOUBTFUL:
            self.until = now + DOUBT
        if step.to is not self.state:
            self.state = step.to
            self.changed_at = now
