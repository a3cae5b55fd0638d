"""The coordinator: peers of the overlay, permission to hear of each other, and their updates.

Source: docs/protocol/coordination.md#requests.

Peers connect, send their addresses (their node) and request tunnels. A tunnel joins its source (a client) and its
destination (an agent); both receive the other's node. Everything here is synchronous and pure: methods return the
`Delivery`s that the caller has to hand out. A node's body is opaque bytes here; only the addresses matter to the rules.
Not here: streams, buffers and their overflow (coderd/services/network/coordinator.py).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from coder.domain.network.coordination_rules import CoordinatedNode, CoordinationRequest, CoordinationRules

MAX_UPDATES = 1024
"Peer updates in one delivery; larger batches are split (docs/protocol/coordination.md#ends)."


MAX_REVOKED = 1024
"""Maximum pending revocations for disconnected agents; the oldest are dropped."""

OVERWRITTEN = "peer ID overwritten by new connection"
CLOSED = "coordinator closed"
OVERFLOW = "failed to update tunnel peer mapping"
ACCESS_REVOKED = "no longer allowed"
KEY_TAKEN = "authorization: another peer is present with this key"
HANDSHAKE_ERROR = "ready for handshake error"
"""Prefix of errors after which clients continue."""


class NodeKind(enum.IntEnum):
    """Kinds of peer updates; the numbers are those of the wire."""

    NODE = 1
    DISCONNECTED = 2
    LOST = 3
    READY_FOR_HANDSHAKE = 4


@dataclass(frozen=True, slots=True)
class Update:
    peer: UUID
    kind: NodeKind
    reason: str
    node: CoordinatedNode | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """Messages for one connection; after `end` it is closed."""

    connection: int
    updates: tuple[Update, ...] = ()
    error: str = ""
    end: bool = False


@dataclass(slots=True)
class _Peer:
    id: UUID
    connection: int
    rules: CoordinationRules
    node: CoordinatedNode | None = None
    sent: dict[UUID, CoordinatedNode] = field(default_factory=dict)
    """Last node sent of each other peer; without an entry there is nothing to withdraw."""


class _Tunnels:
    """Pairs (source, destination), indexed from either end."""

    def __init__(self) -> None:
        self._by_source: dict[UUID, set[UUID]] = {}
        self._by_destination: dict[UUID, set[UUID]] = {}

    def add(self, source: UUID, destination: UUID) -> None:
        self._by_source.setdefault(source, set()).add(destination)
        self._by_destination.setdefault(destination, set()).add(source)

    def remove(self, source: UUID, destination: UUID) -> None:
        for table, item, other in (
            (self._by_source, source, destination),
            (self._by_destination, destination, source),
        ):
            if item in table:
                table[item].discard(other)
                if not table[item]:
                    del table[item]

    def remove_from(self, source: UUID) -> None:
        for destination in tuple(self._by_source.get(source, ())):
            self.remove(source, destination)

    def destinations_of(self, source: UUID) -> list[UUID]:
        return sorted(self._by_source.get(source, ()))

    def others(self, peer: UUID) -> list[UUID]:
        """Return every peer that shares a tunnel with `peer`, in a stable order."""
        return sorted(self._by_source.get(peer, set()) | self._by_destination.get(peer, set()))

    def sources_of(self, destination: UUID) -> list[UUID]:
        return sorted(self._by_destination.get(destination, ()))

    def pairs(self) -> list[tuple[UUID, UUID]]:
        return [(source, other) for source, others in self._by_source.items() for other in sorted(others)]

    def joined(self, peer: UUID, other: UUID) -> bool:
        return other in self._by_source.get(peer, ()) or other in self._by_destination.get(peer, ())


class Coordination:
    """All peers and tunnels of one server."""

    def __init__(self) -> None:
        self._peers: dict[UUID, _Peer] = {}
        self._connections: dict[int, UUID] = {}
        self._tunnels = _Tunnels()
        self._keys: dict[bytes, UUID] = {}
        """Connected peer that owns a key: packets are attributed by it."""
        self._next_connection = 1
        self._left_behind: dict[UUID, list[UUID]] = {}
        """Destinations of a lost peer, until the caller takes them."""
        self._revoked: dict[tuple[UUID, UUID], None] = {}
        """(destination, peer): revocations that a disconnected destination must receive first."""

    def node_of(self, peer: UUID) -> CoordinatedNode | None:
        result = self._peers.get(peer)
        return result.node if result else None

    def is_present(self, peer: UUID) -> bool:
        """Return whether the peer has a stream."""
        return peer in self._peers

    def tunnels(self) -> list[tuple[UUID, UUID]]:
        """Return all pairs of source and destination."""
        return self._tunnels.pairs()

    def sources_of(self, destination: UUID) -> list[UUID]:
        """Return the peers with a tunnel to `destination`, connected or not."""
        return self._tunnels.sources_of(destination)

    def nodes(self) -> dict[UUID, CoordinatedNode]:
        """Return the connected peers that sent a node."""
        return {peer.id: peer.node for peer in self._peers.values() if peer.node is not None}

    def tunnels_to(self, peer: UUID) -> int:
        """Return the number of tunnels that end or begin at `peer`."""
        return len(self._tunnels.others(peer))

    # ---- verbs

    def connect(self, peer_id: UUID, rules: CoordinationRules) -> tuple[int, list[Delivery]]:
        """Open a new stream of `peer_id`; return its connection number and deliveries. An older stream of the peer is
        ended.

        The stream begins without tunnels: the older stream's are left behind, and each has to be requested again.
        Access to every tunnel of a stream is thus checked for that stream.
        """
        number = self._next_connection
        self._next_connection += 1
        out = []
        older = self._peers.get(peer_id)
        if older is not None:
            del self._connections[older.connection]
            out.append(Delivery(older.connection, error=OVERWRITTEN, end=True))
            out += self._leave_behind(older)
            self._release_keys(older)
        peer = self._peers[peer_id] = _Peer(peer_id, number, rules)
        self._connections[number] = peer_id
        out += self._tell_revoked(peer)
        known = [self._peers[other] for other in self._tunnels.others(peer_id) if other in self._peers]
        out += self._tell_nodes(peer, [other for other in known if other.node is not None], "init")
        return number, out

    def handle(self, connection: int, request: CoordinationRequest) -> list[Delivery]:
        """Apply `request`, in the order of its fields. A refusal removes the peer as lost."""
        peer_id = self._connections.get(connection)
        if peer_id is None:
            return []  # overwritten or removed while the message was on its way
        peer = self._peers[peer_id]
        refusal = peer.rules.explain_refusal(request)
        if refusal:
            return self.refuse(connection, f"authorization: {refusal}")
        if request.node is not None and self.holder_of(request.node.keys, peer_id) is not None:
            return self.refuse(connection, KEY_TAKEN)
        out: list[Delivery] = []
        if request.node is not None:
            out += self._update_node(peer, request.node)
        if request.add_tunnel is not None:
            out += self._add_tunnel(peer, request.add_tunnel)
        if request.remove_tunnel is not None:
            out += self._remove_tunnel(peer, request.remove_tunnel)
        if request.disconnect:
            out += self._leave(peer, NodeKind.DISCONNECTED, "graceful disconnect")
            return [*out, Delivery(connection, end=True)]
        refused = False
        for other in request.ready_for_handshake:
            if not self._tunnels.joined(peer.id, other):
                # One refusal per message: a peer that requests a thousand strangers would fill its own mailbox.
                if not refused:
                    text = f'{HANDSHAKE_ERROR}: you do not share a tunnel with "{other}"'
                    out.append(Delivery(peer.connection, error=text))
                refused = True
            else:
                out += self._ready_for_handshake(peer, other)
        return out

    def refuse(self, connection: int, error: str) -> list[Delivery]:
        """Refuse a request: send the reason and remove the peer."""
        return [Delivery(connection, error=error, end=True), *self.lose(connection)]

    def lose(self, connection: int, kind: NodeKind = NodeKind.LOST) -> list[Delivery]:
        """Remove the peer of a broken stream."""
        return self._drop(connection, kind, "lost" if kind == NodeKind.LOST else "graceful disconnect")

    def part(self, connection: int, destination: UUID, kind: NodeKind) -> list[Delivery]:
        """Apply the end of a tunnel to `destination`, or of the peer, at another server; `kind` says which."""
        source = self._connections[connection]
        self._tunnels.remove(source, destination)
        self._peers[source].sent.pop(destination, None)
        return self._take_back(destination, source, kind, "lost" if kind == NodeKind.LOST else "remove tunnel")

    def retell(self, connection: int, peer: UUID) -> None:
        """Forget that the connection received `peer`, because it reports not to know it."""
        self._peers[self._connections[connection]].sent.pop(peer, None)

    def displace(self, peer: UUID) -> list[Delivery]:
        """End the local streams of a peer that connected to another server."""
        connection = self._peers[peer].connection
        return [Delivery(connection, error=OVERWRITTEN, end=True), *self.lose(connection)]

    def cut(self, peer: UUID) -> list[Delivery]:
        """Revoke a peer's access: unlike for a lost peer, the others end their tunnels with it immediately."""
        result = self._peers.get(peer)
        return self._leave(result, NodeKind.DISCONNECTED, ACCESS_REVOKED) if result is not None else []

    def take_left_behind(self, peer: UUID) -> list[UUID]:
        """Take the destinations of a peer that was just lost: their tunnels with it stay up as long as they are
        used."""
        return self._left_behind.pop(peer, [])

    def revoke(self, peer: UUID, destinations: Iterable[UUID]) -> list[Delivery]:
        """Revoke tunnels a peer left behind, as `cut` does; disconnected destinations receive it later.

        Tunnels requested again since then are left alone: their server decides.
        """
        out = []
        for destination in destinations:
            if self._tunnels.joined(peer, destination):
                continue
            self._revoked[destination, peer] = None
            if destination in self._peers:
                out += self._tell_revoked(self._peers[destination])
        while len(self._revoked) > MAX_REVOKED:
            del self._revoked[next(iter(self._revoked))]
        return out

    def holder_of(self, keys: Iterable[bytes], peer: UUID) -> UUID | None:
        """Return the connected peer other than `peer` with one of these keys."""
        return next((self._keys[key] for key in keys if self._keys.get(key, peer) != peer), None)

    def overflow(self, connection: int) -> list[Delivery]:
        """Remove a peer that does not read its messages."""
        delivery = [Delivery(connection, error=OVERFLOW, end=True)] if connection in self._connections else []
        return [*delivery, *self._drop(connection, NodeKind.DISCONNECTED, OVERFLOW)]

    def close(self) -> list[Delivery]:
        """Notify and close every connection; the server stops."""
        out = []
        for connection in list(self._connections):
            out.append(Delivery(connection, error=CLOSED, end=True))
        self._connections.clear()
        self._peers.clear()
        self._keys.clear()
        return out

    # ---- internals

    def _drop(self, connection: int, kind: NodeKind, reason: str) -> list[Delivery]:
        peer_id = self._connections.get(connection)
        return self._leave(self._peers[peer_id], kind, reason) if peer_id is not None else []

    def _leave(self, peer: _Peer, kind: NodeKind, reason: str) -> list[Delivery]:
        del self._peers[peer.id]
        del self._connections[peer.connection]
        self._release_keys(peer)
        out = []
        destinations = self._tunnels.destinations_of(peer.id)
        if kind is NodeKind.LOST and destinations:
            self._left_behind[peer.id] = destinations
        for other in self._tunnels.others(peer.id):
            out += self._take_back(other, peer.id, kind, reason)
        self._tunnels.remove_from(peer.id)
        return out

    def _leave_behind(self, older: _Peer) -> list[Delivery]:
        """Leave the tunnels of an overwritten stream behind, like those of a lost one."""
        destinations = self._tunnels.destinations_of(older.id)
        if destinations:
            self._left_behind[older.id] = destinations
        self._tunnels.remove_from(older.id)
        return [
            delivery for other in destinations for delivery in self._take_back(other, older.id, NodeKind.LOST, "lost")
        ]

    def _release_keys(self, peer: _Peer) -> None:
        for key in peer.node.keys if peer.node is not None else ():
            if self._keys.get(key) == peer.id:
                del self._keys[key]

    def _update_node(self, peer: _Peer, node: CoordinatedNode) -> list[Delivery]:
        self._release_keys(peer)
        self._keys.update(dict.fromkeys(node.keys, peer.id))
        peer.node = node
        out = []
        for other in self._tunnels.others(peer.id):
            if other in self._peers:
                out += self._tell_nodes(self._peers[other], [peer], "node update")
        return out

    def _add_tunnel(self, peer: _Peer, destination: UUID) -> list[Delivery]:
        self._tunnels.add(peer.id, destination)
        self._revoked.pop((destination, peer.id), None)
        other = self._peers.get(destination)
        if other is None:
            return []
        out = []
        if other.node is not None:
            out += self._tell_nodes(peer, [other], "add tunnel")
        if peer.node is not None:
            out += self._tell_nodes(other, [peer], "add tunnel")
        return out

    def _remove_tunnel(self, peer: _Peer, destination: UUID) -> list[Delivery]:
        self._tunnels.remove(peer.id, destination)
        reason = "remove tunnel"
        return [
            *self._take_back(peer.id, destination, NodeKind.DISCONNECTED, reason),
            *self._take_back(destination, peer.id, NodeKind.DISCONNECTED, reason),
        ]

    def _ready_for_handshake(self, peer: _Peer, other_id: UUID) -> list[Delivery]:
        other = self._peers.get(other_id)
        if other is None:
            return []
        return [Delivery(other.connection, (Update(peer.id, NodeKind.READY_FOR_HANDSHAKE, "ready for handshake"),))]

    def _tell_nodes(self, peer: _Peer, others: list[_Peer], reason: str) -> list[Delivery]:
        updates = []
        for other in others:
            if other.node is not None and peer.sent.get(other.id) != other.node:
                peer.sent[other.id] = other.node
                updates.append(Update(other.id, NodeKind.NODE, reason, other.node))
        return [
            Delivery(peer.connection, tuple(updates[at : at + MAX_UPDATES]))
            for at in range(0, len(updates), MAX_UPDATES)
        ]

    def _tell_revoked(self, peer: _Peer) -> list[Delivery]:
        pairs = [pair for pair in self._revoked if pair[0] == peer.id]
        for pair in pairs:
            del self._revoked[pair]
            peer.sent.pop(pair[1], None)
        updates = tuple(Update(departed, NodeKind.DISCONNECTED, ACCESS_REVOKED) for _, departed in pairs)
        return [Delivery(peer.connection, updates)] if updates else []

    def _take_back(self, peer_id: UUID, departed: UUID, kind: NodeKind, reason: str) -> list[Delivery]:
        """Tell `peer_id` that `gone` left, if it ever received its node."""
        peer = self._peers.get(peer_id)
        if peer is None or peer.sent.pop(departed, None) is None:
            return []
        return [Delivery(peer.connection, (Update(departed, kind, reason),))]
