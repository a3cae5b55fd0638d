"""Timers of a tunnel: a table from events to deadlines.

Lives here: deadlines, and the rules that move them.
Does not live here: the reaction to a due timer (peer.py).
Obeys: the WireGuard paper, sections 6.2-6.5, as genuine peers implement them.

Events come with every batch, deadlines pass rarely: postponing a deadline changes one list slot, and only a deadline
earlier than all before is announced to the device's heap. A wake-up may therefore find nothing due.
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
    """The timers; also the slot of each deadline, and the order in which several are served."""

    DROP_KEYS = 0
    "Some keys are expired."
    ZERO_KEYS = 1
    """No handshake for very long. Before every timer that starts one: after a machine slept, all of these are due
    together."""
    RETRY = 2
    "Our initiation was not answered."
    PASSIVE_KEEPALIVE = 3
    "Data came in and nothing went out."
    NEW_HANDSHAKE = 4
    "Data went out and nothing came in."
    PERSISTENT_KEEPALIVE = 5
    "No packet was sent or received."


_ARM: Final = 0  # unless it is armed already
_RESTART: Final = 1
_DISARM: Final = 2
_RESTART_PERSISTENT: Final = 3

Rules = tuple[tuple[int, Timer, float], ...]
"""(operation, timer, seconds)."""

# WireGuard paper 6.5 has the two silences. A peer that received data answers within ten seconds, if only with a
# keepalive. A peer that sent data may therefore conclude after fifteen that the other has lost the keys.
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
# The initiator completes with the response, the responder with the first data. Until then the responder's keys may
# answer a replayed initiation, and nothing must be sent with them (WireGuard paper, section 5).
HANDSHAKE_COMPLETED: Rules = ((_DISARM, Timer.RETRY, 0),)
# From the creation of the keys, not from their last use: nine minutes are a promise about secrets.
SESSION_DERIVED: Rules = ((_RESTART, Timer.ZERO_KEYS, ZERO_KEYS_AFTER),)
# WireGuard paper, section 6.4.
GAVE_UP: Rules = (
    (_DISARM, Timer.RETRY, 0),
    (_DISARM, Timer.PASSIVE_KEEPALIVE, 0),
    # Giving up keeps the current keys: the path may have failed in one direction only. They are erased when no session
    # follows.
    (_ARM, Timer.ZERO_KEYS, ZERO_KEYS_AFTER),
)

# Two peers that lost the same session restart in the same moment; without jitter they would do so for ever.
_JITTERED = (Timer.RETRY, Timer.NEW_HANDSHAKE)


class SessionTimers:
    """Deadlines in seconds of the caller's clock."""

    __slots__ = ("_announce", "deadlines", "interval", "jitter", "wake")

    def __init__(self, announce: Callable[[float], None]) -> None:
        self._announce = announce
        self.deadlines = [inf] * len(Timer)
        self.wake = inf
        "No deadline is earlier than this."
        self.interval = 0.0
        "Interval of persistent keepalives; 0 is off."
        # Set with each initiation (peer.py); nothing is random here.
        self.jitter = 0.0
        "Added where two peers could act in lockstep."

    def apply(self, rules: Rules, now: float) -> None:
        """Apply an event."""
        deadlines = self.deadlines
        for operation, timer, delay in rules:
            # The bound `wake` stays: searching the next deadline would cost more than one needless wake-up.
            if operation == _DISARM:
                deadlines[timer] = inf
            elif operation == _RESTART_PERSISTENT:
                if self.interval:
                    self.arm(timer, now + self.interval)
            # An armed timer stays: fifteen seconds count from the first unanswered packet, not from the last.
            elif operation == _RESTART or deadlines[timer] == inf:
                self.arm(timer, now + delay + (self.jitter if timer in _JITTERED else 0.0))

    def data_sent(self, now: float) -> None:
        """Apply `PACKET_SENT` and `DATA_SENT`, for every batch on the hot path: a fifth of the cost of the tables."""
        deadlines = self.deadlines
        # Our data is the answer the peer waits for.
        deadlines[Timer.PASSIVE_KEEPALIVE] = inf
        if self.interval:
            self.arm(Timer.PERSISTENT_KEEPALIVE, now + self.interval)
        if deadlines[Timer.NEW_HANDSHAKE] == inf:
            self.arm(Timer.NEW_HANDSHAKE, now + NEW_HANDSHAKE_TIMEOUT + self.jitter)

    def data_received(self, now: float) -> bool:
        """Apply `PACKET_RECEIVED` and `DATA_RECEIVED`; return whether an answer to earlier data was already due."""
        deadlines = self.deadlines
        # Every genuine packet counts, also a keepalive: the peer has the keys (WireGuard paper, section 6.5).
        deadlines[Timer.NEW_HANDSHAKE] = inf
        if self.interval:
            self.arm(Timer.PERSISTENT_KEEPALIVE, now + self.interval)
        if deadlines[Timer.PASSIVE_KEEPALIVE] != inf:
            return True
        self.arm(Timer.PASSIVE_KEEPALIVE, now + KEEPALIVE_TIMEOUT)
        return False

    def arm(self, timer: Timer, at: float) -> None:
        """Set a deadline."""
        self.deadlines[timer] = at
        if at < self.wake:
            self.wake = at
            self._announce(at)

    def disarm(self, timer: Timer) -> None:
        """Clear a deadline."""
        self.deadlines[timer] = inf

    def is_armed(self, timer: Timer) -> bool:
        """Return whether the timer has a deadline."""
        return self.deadlines[timer] != inf

    def take_due(self, now: float) -> list[Timer]:
        """Disarm and return all due timers; call `settle` after acting on them."""
        # In the order of the enumeration: keys are dropped before anything is sent with them.
        due = [timer for timer in Timer if self.deadlines[timer] <= now]
        for timer in due:
            self.deadlines[timer] = inf
        return due

    def settle(self) -> None:
        """Recompute and announce the earliest deadline."""
        self.wake = min(self.deadlines)
        if self.wake != inf:
            self._announce(self.wake)

    def slept(self, seconds: float) -> None:
        """Move all deadlines earlier by a time during which the caller's clock stood still."""
        # Infinity stays what it is.
        self.deadlines = [at - seconds for at in self.deadlines]
        self.settle()

    def clear(self) -> None:
        """Clear all deadlines."""
        self.deadlines = [inf] * len(Timer)
        self.wake = inf
