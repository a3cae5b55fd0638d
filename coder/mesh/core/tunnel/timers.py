"""The timers of one tunnel: a table of what each fact does to them.

Lives here: deadlines, and the rules that move them.
Does not live here: what is done when one is due (peer.py).
Obeys: the WireGuard paper, sections 6.2-6.5, as genuine peers implement them.

Facts arrive with every batch, deadlines pass rarely: moving a deadline away touches one list slot, and only one that
comes nearer than everything before is announced to the device's heap. A wake-up may therefore find nothing due.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from math import inf
from typing import Final

from coder.mesh.core.tunnel.constants import (
    KEEPALIVE_TIMEOUT,
    NEW_HANDSHAKE_TIMEOUT,
    REKEY_TIMEOUT,
    ZERO_KEYS_AFTER,
)


class Timer(IntEnum):
    """What may become due; also the slot of its deadline, and the order in which several are served."""

    DROP_KEYS = 0
    "Some keys are past use."
    ZERO_KEYS = 1
    "No handshake for very long. Before whatever begins one: after a machine slept, all of these are due at once."
    RETRY = 2
    "Our initiation was not answered."
    PASSIVE_KEEPALIVE = 3
    "Data came in and nothing went out."
    NEW_HANDSHAKE = 4
    "Data went out and nothing came in."
    PERSISTENT_KEEPALIVE = 5
    "Nothing at all went either way."


_ARM: Final = 0  # unless it is armed already
_RESTART: Final = 1
_DISARM: Final = 2
_RESTART_PERSISTENT: Final = 3

Rules = tuple[tuple[int, Timer, float], ...]
"""(operation, timer, seconds)."""

# WireGuard paper 6.5 has the two silences: who heard data answers within ten seconds, if only with nothing, so that who
# sent data may conclude after fifteen that the other has lost the keys.
DATA_SENT: Rules = ((_ARM, Timer.NEW_HANDSHAKE, NEW_HANDSHAKE_TIMEOUT),)
DATA_RECEIVED: Rules = ((_ARM, Timer.PASSIVE_KEEPALIVE, KEEPALIVE_TIMEOUT),)
PACKET_SENT: Rules = (
    (_DISARM, Timer.PASSIVE_KEEPALIVE, 0),
    (_RESTART_PERSISTENT, Timer.PERSISTENT_KEEPALIVE, 0),
)
PACKET_RECEIVED: Rules = (
    (_DISARM, Timer.NEW_HANDSHAKE, 0),
    (_RESTART_PERSISTENT, Timer.PERSISTENT_KEEPALIVE, 0),
)
INITIATION_SENT: Rules = ((_RESTART, Timer.RETRY, REKEY_TIMEOUT), *PACKET_SENT)
# Completed is what the initiator knows from the response and the responder from the first data: until then the
# responder's keys may answer a replayed initiation, and nothing must be sent with them (WireGuard paper, section 5).
HANDSHAKE_COMPLETED: Rules = ((_DISARM, Timer.RETRY, 0),)
# From the keys' birth, not from their last use: nine minutes are a promise about secrets.
SESSION_DERIVED: Rules = ((_RESTART, Timer.ZERO_KEYS, ZERO_KEYS_AFTER),)
# WireGuard paper, section 6.4.
GAVE_UP: Rules = (
    (_DISARM, Timer.RETRY, 0),
    (_DISARM, Timer.PASSIVE_KEEPALIVE, 0),
    # Giving up keeps the keys there are: the path may have failed one way only. They go when nothing has come of it.
    (_ARM, Timer.ZERO_KEYS, ZERO_KEYS_AFTER),
)

# Two peers that lost the same session begin again in the same moment; without jitter they would do so for ever.
_JITTERED = (Timer.RETRY, Timer.NEW_HANDSHAKE)


class SessionTimers:
    """Deadlines in seconds of the caller's clock."""

    __slots__ = ("_announce", "deadlines", "interval", "jitter", "wake")

    def __init__(self, announce: Callable[[float], None]) -> None:
        self._announce = announce
        self.deadlines = [inf] * len(Timer)
        self.wake = inf
        "No deadline is nearer than this."
        self.interval = 0.0
        "Of persistent keepalives; 0 is off."
        # Set with each initiation (peer.py); nothing is random here.
        self.jitter = 0.0
        "Added where two peers could act in step."

    def happened(self, rules: Rules, now: float) -> None:
        """Apply a fact."""
        deadlines = self.deadlines
        for operation, timer, delay in rules:
            # The bound `wake` is left where it is: looking for the next would cost more than one wake-up in vain.
            if operation == _DISARM:
                deadlines[timer] = inf
            elif operation == _RESTART_PERSISTENT:
                if self.interval:
                    self.arm(timer, now + self.interval)
            # An armed timer stays where it is: fifteen seconds count from the first packet that went unanswered, not
            # from the last.
            elif operation == _RESTART or deadlines[timer] == inf:
                self.arm(timer, now + delay + (self.jitter if timer in _JITTERED else 0.0))

    def data_sent(self, now: float) -> None:
        """`PACKET_SENT` and `DATA_SENT`, for every batch on the hot path: a fifth of what the tables cost."""
        deadlines = self.deadlines
        # Data of ours is the answer the peer waits for.
        deadlines[Timer.PASSIVE_KEEPALIVE] = inf
        if self.interval:
            self.arm(Timer.PERSISTENT_KEEPALIVE, now + self.interval)
        if deadlines[Timer.NEW_HANDSHAKE] == inf:
            self.arm(Timer.NEW_HANDSHAKE, now + NEW_HANDSHAKE_TIMEOUT + self.jitter)

    def data_received(self, now: float) -> bool:
        """`PACKET_RECEIVED` and `DATA_RECEIVED`; -> whether a keepalive was to answer earlier data already."""
        deadlines = self.deadlines
        # Anything genuine will do, also a keepalive: the peer has the keys (WireGuard paper, section 6.5).
        deadlines[Timer.NEW_HANDSHAKE] = inf
        if self.interval:
            self.arm(Timer.PERSISTENT_KEEPALIVE, now + self.interval)
        if deadlines[Timer.PASSIVE_KEEPALIVE] != inf:
            return True
        self.arm(Timer.PASSIVE_KEEPALIVE, now + KEEPALIVE_TIMEOUT)
        return False

    def arm(self, timer: Timer, at: float) -> None:
        """Set one deadline."""
        self.deadlines[timer] = at
        if at < self.wake:
            self.wake = at
            self._announce(at)

    def disarm(self, timer: Timer) -> None:
        """Clear one deadline."""
        self.deadlines[timer] = inf

    def is_armed(self, timer: Timer) -> bool:
        """Whether it has a deadline."""
        return self.deadlines[timer] != inf

    def take_due(self, now: float) -> list[Timer]:
        """Everything due by now, disarmed; call `settle` after acting on it."""
        # In the order of the enumeration: keys are dropped before anything is sent with them.
        due = [timer for timer in Timer if self.deadlines[timer] <= now]
        for timer in due:
            self.deadlines[timer] = inf
        return due

    def settle(self) -> None:
        """Recompute and announce the nearest deadline."""
        self.wake = min(self.deadlines)
        if self.wake != inf:
            self._announce(self.wake)

    def slept(self, seconds: float) -> None:
        """The caller's clock stood still for so long: everything is due that much earlier."""
        # Infinity stays what it is.
        self.deadlines = [at - seconds for at in self.deadlines]
        self.settle()

    def clear(self) -> None:
        """Nothing is due any more."""
        self.deadlines = [inf] * len(Timer)
        self.wake = inf
