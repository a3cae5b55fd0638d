"""The coordinator: who is on the overlay, who may hear of whom, and what they hear.

Source: docs/protocol/coordination.md#requests.

Peers connect, say what they are reachable by (their node) and ask for tunnels. A tunnel joins its source (a client)
and its destination (an agent); both are told of the other's node. Everything here is synchronous and pure: verbs
return the `Delivery`s that the caller has to hand out. A node's body is opaque bytes here; only the addresses matter
to the rules. Not here: streams, buffers and their overflow (coderd/services/network/coordinator.py).
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
"Words for agents that are away; the oldest are forgotten."

OVERWRITTEN = "peer ID overwritten by new connection"
CLOSED = "coordinator closed"
OVERFLOW = "failed to update tunnel peer mapping"
SHUT_OUT = "no longer allowed"
KEY_TAKEN = "authorization: another peer is present with this key"
HANDSHAKE_ERROR = "ready for handshake error"
"Clients go on after an error that starts with this one."


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
    """What one connection is sent; after `end` it is closed."""

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
    "The node of each other peer as it was told last; no entry, nothing to take back."


class _Tunnels:
    """Pairs (source, destination), found from either end."""

    def __init__(self) -> None:
        self._by_source: dict[UUID, set[UUID]] = {}
        self._by_destination: dict[UUID, set[UUID]] = {}

    def add(self, source: UUID, destination: UUID) -> None:
        self._by_source.setdefault(source, set()).add(destination)
        self._by_destination.setdefault(destination, set()).add(source)

    def remove(self, source: UUID, destination: UUID) -> None:
        for table, one, other in (
            (self._by_source, source, destination),
            (self._by_destination, destination, source),
        ):
            if one in table:
                table[one].discard(other)
                if not table[one]:
                    del table[one]

    def remove_from(self, source: UUID) -> None:
        for destination in tuple(self._by_source.get(source, ())):
            self.remove(source, destination)

    def destinations_of(self, source: UUID) -> list[UUID]:
        return sorted(self._by_source.get(source, ()))

    def others(self, peer: UUID) -> list[UUID]:
        """Everyone `peer` shares a tunnel with, in a stable order."""
        return sorted(self._by_source.get(peer, set()) | self._by_destination.get(peer, set()))

    def sources_of(self, destination: UUID) -> list[UUID]:
        return sorted(self._by_destination.get(destination, ()))

    def pairs(self) -> list[tuple[UUID, UUID]]:
        return [(source, other) for source, others in self._by_source.items() for other in sorted(others)]

    def joined(self, one: UUID, other: UUID) -> bool:
        return other in self._by_source.get(one, ()) or other in self._by_destination.get(one, ())


class Coordination:
    """All peers and tunnels of one server."""

    def __init__(self) -> None:
        self._peers: dict[UUID, _Peer] = {}
        self._connections: dict[int, UUID] = {}
        self._tunnels = _Tunnels()
        self._keys: dict[bytes, UUID] = {}
        "Which present peer a key belongs to: packets are told apart by it."
        self._next_connection = 1
        self._left_behind: dict[UUID, list[UUID]] = {}
        "The destinations of a peer that was lost, until somebody takes note of them."
        self._revoked: dict[tuple[UUID, UUID], None] = {}
        "(destination, peer): what a destination that is away has to hear first."

    def node_of(self, peer: UUID) -> CoordinatedNode | None:
        found = self._peers.get(peer)
        return found.node if found else None

    def is_present(self, peer: UUID) -> bool:
        """Whether the peer has a stream."""
        return peer in self._peers

    def tunnels(self) -> list[tuple[UUID, UUID]]:
        """All pairs of source and destination."""
        return self._tunnels.pairs()

    def sources_of(self, destination: UUID) -> list[UUID]:
        """Who has a tunnel to `destination`, present or not."""
        return self._tunnels.sources_of(destination)

    def nodes(self) -> dict[UUID, CoordinatedNode]:
        """The present peers that said what they are reachable by."""
        return {peer.id: peer.node for peer in self._peers.values() if peer.node is not None}

    def tunnels_to(self, peer: UUID) -> int:
        """How many tunnels end or begin at `peer`."""
        return len(self._tunnels.others(peer))

    # ---- verbs

    def connect(self, peer_id: UUID, rules: CoordinationRules) -> tuple[int, list[Delivery]]:
        """A new stream of `peer_id`: its connection number and what follows. An older stream of it is ended.

        It begins without tunnels: those of the older stream are left behind, and each has to be asked for anew, so
        that whoever answers for this stream has looked at every one of them.
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
        """Does what `request` asks, in the order of its fields. A refusal removes the peer as lost."""
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
                # Once a message: who asks for a thousand strangers would fill its own mailbox.
                if not refused:
                    text = f'{HANDSHAKE_ERROR}: you do not share a tunnel with "{other}"'
                    out.append(Delivery(peer.connection, error=text))
                refused = True
            else:
                out += self._ready_for_handshake(peer, other)
        return out

    def refuse(self, connection: int, error: str) -> list[Delivery]:
        """The peer asked for something it may not have: it hears why and is gone."""
        return [Delivery(connection, error=error, end=True), *self.lose(connection)]

    def lose(self, connection: int, kind: NodeKind = NodeKind.LOST) -> list[Delivery]:
        """The stream broke."""
        return self._drop(connection, kind, "lost" if kind == NodeKind.LOST else "graceful disconnect")

    def part(self, connection: int, destination: UUID, kind: NodeKind) -> list[Delivery]:
        """The peer at another server gave up its tunnel to `destination`, or left: `kind` says which."""
        source = self._connections[connection]
        self._tunnels.remove(source, destination)
        self._peers[source].sent.pop(destination, None)
        return self._take_back(destination, source, kind, "lost" if kind == NodeKind.LOST else "remove tunnel")

    def retell(self, connection: int, peer: UUID) -> None:
        """Forgets that the connection was told of `peer`: it says that it does not know."""
        self._peers[self._connections[connection]].sent.pop(peer, None)

    def displace(self, peer: UUID) -> list[Delivery]:
        """The peer has connected to another server: what it has here is ended."""
        connection = self._peers[peer].connection
        return [Delivery(connection, error=OVERWRITTEN, end=True), *self.lose(connection)]

    def cut(self, peer: UUID) -> list[Delivery]:
        """The peer may not be here any more: unlike one that is lost, the others end their tunnels with it at once."""
        found = self._peers.get(peer)
        return self._leave(found, NodeKind.DISCONNECTED, SHUT_OUT) if found is not None else []

    def take_left_behind(self, peer: UUID) -> list[UUID]:
        """The destinations of a peer that was just lost: their tunnels with it go on for as long as they are used."""
        return self._left_behind.pop(peer, [])

    def revoke(self, peer: UUID, destinations: Iterable[UUID]) -> list[Delivery]:
        """Like `cut` for tunnels a peer left behind: these end theirs with it, those that are away later.

        What it has asked for anew since then is left alone: whoever serves it decides.
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
        """The present peer other than `peer` with one of these keys."""
        return next((self._keys[key] for key in keys if self._keys.get(key, peer) != peer), None)

    def overflow(self, connection: int) -> list[Delivery]:
        """The peer does not read what it is sent."""
        told = [Delivery(connection, error=OVERFLOW, end=True)] if connection in self._connections else []
        return [*told, *self._drop(connection, NodeKind.DISCONNECTED, OVERFLOW)]

    def close(self) -> list[Delivery]:
        """The server stops: everyone is told and closed."""
        out = []
        for connection in list(self._connections):
            out.append(Delivery(connection, error=CLOSED, end=True))
        self._connections.clear()
        self._peers.clear()
        self._keys.clear()
        return out

    # ---- inside

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
        """The tunnels that an overwritten stream had opened are those of a lost one."""
        destinations = self._tunnels.destinations_of(older.id)
        if destinations:
            self._left_behind[older.id] = destinations
        self._tunnels.remove_from(older.id)
        return [told for other in destinations for told in self._take_back(other, older.id, NodeKind.LOST, "lost")]

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
        updates = tuple(Update(gone, NodeKind.DISCONNECTED, SHUT_OUT) for _, gone in pairs)
        return [Delivery(peer.connection, updates)] if updates else []

    def _take_back(self, peer_id: UUID, gone: UUID, kind: NodeKind, reason: str) -> list[Delivery]:
        """Tells `peer_id` that `gone` left, if it ever heard of it."""
        peer = self._peers.get(peer_id)
        if peer is None or peer.sent.pop(gone, None) is None:
            return []
        return [Delivery(peer.connection, (Update(gone, kind, reason),))]
