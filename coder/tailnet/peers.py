"""Installation of coordinated peers in the mesh: tables and timers, no I/O.

Source: docs/protocol/coordination.md#nodes.

`Peers` processes peer updates and the clock and returns actions for the mesh node. An agent (destination) installs a
peer immediately and answers that it is ready; a client (source) waits for that answer, or five seconds. A lost peer
stays and its tunnel keeps working. It is removed after fifteen minutes without a handshake, or after an hour in which
it could have reconnected and did not.

The node identifies peers by their keys, so two peers with one key are the same to it. The coordinator rejects a foreign
key; should one pass, the second peer is ignored as long as the first is present. A lost peer is replaced: a client that
had to reconnect under a new id has the key of the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

HANDSHAKE_WAIT = 5.0
"Seconds a source waits for READY_FOR_HANDSHAKE after a NODE."
MAX_PEERS = 10_240
"""Peers (ours) that a node remembers. Their number is the coordinator's choice, and each holds keys and timers; further
ones are ignored until others have left."""
LOST_TIMEOUT = 900.0
"Seconds a lost peer stays without a handshake."
ABANDONED_TIMEOUT = 2700.0
"""Seconds (ours) a lost peer stays at most once our own coordinator is back, regardless of its handshakes; checked as
often as the above, so within an hour. A peer with permission requests its tunnel again. For one without it, the servers
that knew it may all have been restarted, and no other message would report its end."""


@dataclass(frozen=True, slots=True)
class PeerNode:
    """Peer's node from the coordinator, validated and converted."""

    public_key: bytes
    disco_key: bytes
    preferred_derp: int
    allowed_ips: tuple[str, ...]
    endpoints: tuple[str, ...]
    as_of: float = 0.0


@dataclass(frozen=True, slots=True)
class Install:
    """Add this peer to the node, or change it; an established session with the same key must continue."""

    peer: UUID
    node: PeerNode
    keepalive: bool


@dataclass(frozen=True, slots=True)
class Remove:
    public_key: bytes


@dataclass(frozen=True, slots=True)
class ReportReady:
    """Send the coordinator our readiness for the handshake of `peer`."""

    peer: UUID


Action = Install | Remove | ReportReady
LastHandshake = Callable[[bytes], float | None]
"""Time of the last WireGuard handshake with a key, None when there was none."""


@dataclass(slots=True)
class _Peer:
    id: UUID
    node: PeerNode | None = None
    installed: bool = False
    ready: bool = False
    install_at: float | None = None
    lost_at: float | None = None
    lost_since: float = 0.0
    "Time when it was lost; `lost_at` moves with its handshakes."


class Peers:
    """Peers of one mesh node. `now` is the trio clock in seconds."""

    def __init__(self, role: Literal["source", "destination"]) -> None:
        self._source = role == "source"
        self._peers: dict[UUID, _Peer] = {}
        self._coordinated_since: float | None = None

    def known(self) -> list[UUID]:
        return list(self._peers)

    def node_of(self, peer: UUID) -> PeerNode | None:
        entry = self._peers.get(peer)
        return entry.node if entry else None

    def is_installed(self, peer: UUID) -> bool:
        entry = self._peers.get(peer)
        return entry is not None and entry.installed

    # ---- coordinator updates

    def receive_node(self, peer_id: UUID, node: PeerNode, now: float) -> list[Action]:
        if node.preferred_derp == 0:
            return []
        actions = self._replace_lost(peer_id, node)
        if actions is None or self._is_full(peer_id):
            return []
        peer = self._peers.setdefault(peer_id, _Peer(peer_id))
        peer.lost_at = None
        if peer.node is not None and peer.node.public_key != node.public_key:
            # The peer's process restarted: its old session is worthless.
            if peer.installed:
                actions.append(Remove(peer.node.public_key))
                peer.installed = False
        elif peer.node is not None and node.as_of < peer.node.as_of:
            node = peer.node  # out of order
        peer.node = node
        if not self._source:
            return [*actions, *self._install(peer), ReportReady(peer_id)]
        if peer.installed or peer.ready:
            return [*actions, *self._install(peer)]
        peer.install_at = now + HANDSHAKE_WAIT
        return actions

    def _replace_lost(self, peer_id: UUID, node: PeerNode) -> list[Action] | None:
        """Forget lost peers with one of the node's keys; return None when a present peer has it."""
        actions: list[Action] = []
        for other in list(self._peers.values()):
            known_node = other.node
            if known_node is None or other.id == peer_id:
                continue
            if known_node.public_key != node.public_key and known_node.disco_key != node.disco_key:
                continue
            if other.lost_at is None:
                return None
            del self._peers[other.id]
            if other.installed and known_node.public_key != node.public_key:
                actions.append(Remove(known_node.public_key))  # with the same key its session continues
        return actions

    def _is_full(self, peer_id: UUID) -> bool:
        return len(self._peers) >= MAX_PEERS and peer_id not in self._peers

    def receive_ready(self, peer_id: UUID) -> list[Action]:
        if self._is_full(peer_id):
            return []
        peer = self._peers.setdefault(peer_id, _Peer(peer_id))
        peer.ready = True
        return self._install(peer)

    def receive_disconnected(self, peer_id: UUID) -> list[Action]:
        peer = self._peers.pop(peer_id, None)
        return [Remove(peer.node.public_key)] if peer is not None and peer.installed and peer.node else []

    def receive_lost(self, peer_id: UUID, now: float) -> None:
        peer = self._peers.get(peer_id)
        if peer is not None and peer.lost_at is None:
            peer.lost_at = peer.lost_since = now

    def mark_coordinated(self, now: float) -> None:
        """Record that a stream to the coordinator is open: lost peers can return from now on."""
        self._coordinated_since = now

    def mark_all_lost(self, now: float) -> None:
        """Mark all peers lost when the stream to the coordinator ended; tunnels continue."""
        self._coordinated_since = None
        for peer_id in self._peers:
            self.receive_lost(peer_id, now)

    def forget(self, peer_id: UUID) -> list[Action]:
        """Forget a peer that needs no tunnel any more."""
        return self.receive_disconnected(peer_id)

    # ---- time

    def next_wake(self) -> float | None:
        """Return the time of the next `on_timer` call."""
        times = [at for peer in self._peers.values() for at in (peer.install_at, _expiry(peer)) if at is not None]
        return min(times, default=None)

    def on_timer(self, now: float, last_handshake: LastHandshake) -> list[Action]:
        actions: list[Action] = []
        for peer in list(self._peers.values()):
            if peer.install_at is not None and now >= peer.install_at:
                actions += self._install(peer)
            expiry = _expiry(peer)
            if expiry is not None and now >= expiry:
                actions += self._expire(peer, now, last_handshake)
        return actions

    def _expire(self, peer: _Peer, now: float, last_handshake: LastHandshake) -> list[Action]:
        handshake = last_handshake(peer.node.public_key) if peer.node else None
        if handshake is not None and now < handshake + LOST_TIMEOUT and not self._is_abandoned(peer, now):
            peer.lost_at = handshake  # still in use; check again when that handshake is old
            return []
        return self.receive_disconnected(peer.id)

    # ---- internals

    def _is_abandoned(self, peer: _Peer, now: float) -> bool:
        since = self._coordinated_since
        return since is not None and now >= max(peer.lost_since, since) + ABANDONED_TIMEOUT

    def _install(self, peer: _Peer) -> list[Action]:
        peer.install_at = None
        if peer.node is None:
            return []  # remembered: the node follows
        peer.installed = True
        return [Install(peer.id, peer.node, keepalive=self._source and peer.ready)]


def _expiry(peer: _Peer) -> float | None:
    return None if peer.lost_at is None else peer.lost_at + LOST_TIMEOUT


def without_endpoints(actions: Iterable[Action]) -> list[Action]:
    """Return the same actions without peers' endpoints, for disabled direct connections."""
    return [
        replace(action, node=replace(action.node, endpoints=())) if isinstance(action, Install) else action
        for action in actions
    ]
