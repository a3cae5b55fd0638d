"""Path MTU of a UDP path: probing upwards, and detecting a decrease.

Lives here: the search for one address as a table, and the order of probed sizes.
Does not live here: sending pings and judging their loss (probing.py), updating the stack (core/endpoint.py).
Obeys: RFC 8899 (datagram PLPMTUD) with disco pings as probes. A peer with the same stack answers a ping with a pong of
the same size, so both directions are proven together. Genuine peers answer every ping with 1310 bytes: they prove our
direction only, and nothing above the standard size, which they have no use for.

Sizes are bytes of UDP payload.
"""

from __future__ import annotations

from enum import Enum

# 576 less 20 of IPv4 and 8 of UDP.
FLOOR = 548
"""Payload of a path of 576 bytes, the minimum of IPv4; also the size of pings that test whether a path is alive."""
STANDARD = 1310
"""The ping every node sends: a path that carries it is taken to carry the overlay's packets of 1280 bytes (1312)."""
# 1500 less 40 of IPv6 and 8 of UDP. With IPv4 20 more would fit; one size serves both families.
ETHERNET = 1452
"""A whole Ethernet frame with IPv6: inner packets of 1420 bytes."""
# 9000 less the same 48.
JUMBO = 8952
"""A jumbo frame of 9000 bytes with IPv6, and the loopback interface."""
PROBE_SIZES = (FLOOR, 1200, STANDARD, ETHERNET, JUMBO)
"""Tried in this order (RFC 8899 5.3.2: table-based search), 1200 being the RFC's BASE_PLPMTU."""
MAX_PROBES = 3
"""RFC 8899 5.1.2: probes of one size that are not answered before the size counts as too large."""
RAISE_AFTER = 600.0
"""RFC 8899 5.1.1: PMTU_RAISE_TIMER, seconds until larger sizes are tried again."""
# Two blocks of the padding below.
_STEP = 32
"""Ours: a smaller gain is not worth another probe."""
_BLOCK = 16
"""WireGuard pads packets to a multiple of this; with its 32 bytes around them, other sizes carry no more."""


class MtuState(Enum):
    """RFC 8899 section 5.2.

    The RFC's DISABLED and BASE are an address that has not answered, which has no search at all.
    """

    SEARCHING = "searching"
    """Larger sizes are being probed."""
    COMPLETE = "complete"
    """No larger size is worth a probe for now."""


class MtuEvent(Enum):
    """Events of a search."""

    ANSWERED = "probe answered"
    TOO_LARGE = "size unanswered or refused"
    EXHAUSTED = "nothing left to try"
    BLACK_HOLE = "only small pings answered"
    RAISE_DUE = "time to try again"


TABLE: dict[tuple[MtuState, MtuEvent], MtuState] = {
    (MtuState.SEARCHING, MtuEvent.ANSWERED): MtuState.SEARCHING,
    (MtuState.SEARCHING, MtuEvent.TOO_LARGE): MtuState.SEARCHING,
    (MtuState.SEARCHING, MtuEvent.EXHAUSTED): MtuState.COMPLETE,
    (MtuState.SEARCHING, MtuEvent.BLACK_HOLE): MtuState.SEARCHING,
    (MtuState.COMPLETE, MtuEvent.ANSWERED): MtuState.SEARCHING,  # a ping for another reason was larger than all before
    (MtuState.COMPLETE, MtuEvent.RAISE_DUE): MtuState.SEARCHING,
    (MtuState.COMPLETE, MtuEvent.BLACK_HOLE): MtuState.SEARCHING,
}


class MtuSearch:
    """Known size of an address, and the next size to probe."""

    __slots__ = ("_limit", "_pending", "_tries", "at", "carried", "ceiling", "state")

    def __init__(self, carried: int, now: float) -> None:
        """Start a search. `carried`: size of the ping that was answered first."""
        self.state = MtuState.SEARCHING
        self.carried = carried
        "The largest size proven, and in use."
        # The maximum this peer can prove; lower once it has shown to be another implementation.
        self._limit = PROBE_SIZES[-1]
        self.ceiling = self._limit + 1
        "The smallest size believed to be too large."
        self.at = now
        "Time from which `due` may have a result."
        self._pending = 0
        self._tries = 0

    def due(self, now: float, patience: float) -> int | None:
        """Return the size to probe now; call again at `at`. `patience`: seconds an answer may take."""
        if now < self.at:
            return None
        if self.state is MtuState.COMPLETE:
            self._transition(MtuEvent.RAISE_DUE)
            self.ceiling = self._limit + 1
        elif self._pending:
            self._tries += 1
            # RFC 8899 section 3: a lost probe says nothing about congestion, and little about the size: three do. Only
            # silence counts here; a size refused by the operating system goes to `refused`, and needs no second
            # opinion.
            if self._tries >= MAX_PROBES:
                self._too_large(self._pending)
        size = self._pending or self._next()
        if size is None:
            self._transition(MtuEvent.EXHAUSTED)
            self.at = now + RAISE_AFTER
            return None
        self._pending = size
        self.at = now + patience
        return size

    def answered(self, size: int, now: float, *, mirrored: bool = True) -> None:
        """Record the answer to a ping of this size; `mirrored`: by a pong of the same size."""
        if not mirrored:
            # A genuine peer's pong has 1310 bytes whatever the ping's size: above that it proves nothing, and the peer
            # has no use for more.
            self._limit = STANDARD
            size = min(size, STANDARD)
            self.carried = min(self.carried, STANDARD)
            self.ceiling = min(self.ceiling, STANDARD + 1)
        if size > self.carried:
            self._transition(MtuEvent.ANSWERED)
            self.carried = size
            # Larger than believed possible: the belief was wrong (three probes lost by chance), the answer is not.
            self.ceiling = max(self.ceiling, size + 1)
            self._retry(now)
        # The size in flight is above what this peer can prove: waiting for its answer would hold up the search.
        elif self._pending > self._limit:
            self._retry(now)

    def refused(self, size: int, now: float) -> None:
        """Record that the operating system refuses this size: no need to wait for a timeout."""
        # Only for the current probe: an older refusal may be about a removed interface.
        if size == self._pending:
            self._too_large(size)
            self.at = now

    def on_black_hole(self, now: float) -> None:
        """Restart the search at the bottom: pings of the current size are lost, smaller ones are not.

        The lost size is probed once more as well: two lost pings may have been bad luck.
        """
        self._transition(MtuEvent.BLACK_HOLE)
        # RFC 8899 5.2 (from COMPLETE back to BASE): a size that was carried earlier is no promise.
        self.ceiling = self.carried + 1
        self.carried = FLOOR
        self._retry(now)

    def _next(self) -> int | None:
        for size in PROBE_SIZES:
            if self.carried < size < self.ceiling:
                return size
        # Sizes between two of them occur only below an ordinary frame: tunnels in tunnels, PPPoE. Above it there is
        # only JUMBO, which is carried or not.
        if self.ceiling > ETHERNET or self.ceiling - self.carried <= _STEP:
            return None
        # RFC 8899 section 5.3.2 leaves the order of sizes to the implementation: bisection, to a size that the padding
        # can use.
        middle = (self.carried + self.ceiling) // 2 // _BLOCK * _BLOCK
        return middle if middle > self.carried else None

    def _too_large(self, size: int) -> None:
        self._transition(MtuEvent.TOO_LARGE)
        self.ceiling = min(self.ceiling, size)
        self._pending = self._tries = 0

    def _retry(self, now: float) -> None:
        self._pending = self._tries = 0
        self.at = now

    def _transition(self, event: MtuEvent) -> None:
        self.state = TABLE[self.state, event]
