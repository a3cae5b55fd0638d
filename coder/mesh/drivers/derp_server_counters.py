"""What a relay counts, and who is at it: for metrics and for tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RelayCounters:
    """What the relay did since it started; packets unless named otherwise."""

    connections: int = 0
    """Accepted so far."""
    current: int = 0
    """Open now."""
    received: int = 0
    sent: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    dropped_unknown: int = 0
    """Nobody with that key is here."""
    dropped_queue: int = 0
    """The receiver reads too slowly."""
    slow_closed: int = 0
    """Connections closed because a write took longer than two seconds."""
    throttled: int = 0
    """Times a sender had to wait for its rate limit."""
    forwarded_in: int = 0
    """From another relay of the mesh."""
    forwarded_out: int = 0
    """To another relay of the mesh."""
    received_disco: int = 0
    """Of `received`: probes for a direct path."""
    dropped_disco: int = 0
    """Of those dropped, for whatever reason: probes for a direct path."""
    pings: int = 0
    """Each was answered."""
    unknown_frames: int = 0
    moves_in: int = 0
    """Times a client made this relay its home."""
    moves_out: int = 0
    """Times a client left it for another home."""
    told_disconnected: int = 0
    """Times a client was told that a peer had gone."""
    told_not_here: int = 0
    """Times a client was told that a peer is not here."""


@dataclass(frozen=True, slots=True)
class RelayPresence:
    """Who is at the relay now."""

    here: int
    "Keys."
    elsewhere: int
    "Keys at other relays of the mesh, and not here."
    homes: int
    "Connections of clients whose home this relay is."
    watchers: int
    "Connections of other relays that are told who comes and goes."
