"""Random conversations with the coordinator: no client learns of strangers, and all clients converge to the current
state."""

from __future__ import annotations

from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coder.domain.network.coordination import Coordination, Delivery, NodeKind
from coder.domain.network.coordination_rules import CoordinatedNode, CoordinationRequest, FullAccess

PEERS = [UUID(int=number) for number in range(1, 5)]
peers = st.sampled_from(PEERS)


class CoordinatorMachine(RuleBasedStateMachine):
    """Model: connected clients, their nodes, the tunnels; view: the last update of each peer on each connection."""

    def __init__(self) -> None:
        super().__init__()
        self.core = Coordination()
        self.connection: dict[UUID, int] = {}
        self.node: dict[UUID, CoordinatedNode] = {}
        self.tunnels: set[tuple[UUID, UUID]] = set()
        self.view: dict[int, dict[UUID, CoordinatedNode]] = {}
        self.ended: set[int] = set()

    def apply(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            assert delivery.connection not in self.ended, "nothing is sent after the end"
            view = self.view.setdefault(delivery.connection, {})
            for update in delivery.updates:
                if update.kind is NodeKind.NODE:
                    assert update.node is not None
                    assert view.get(update.peer) != update.node, "no update is repeated"
                    view[update.peer] = update.node
                elif update.kind is not NodeKind.READY_FOR_HANDSHAKE:
                    assert update.peer in view, "only known peers are removed"
                    del view[update.peer]
            if delivery.end:
                self.ended.add(delivery.connection)

    def forget(self, peer: UUID) -> None:
        self.connection.pop(peer, None)
        self.node.pop(peer, None)
        self.tunnels = {(a, b) for a, b in self.tunnels if a != peer}

    @rule(peer=peers)
    def connect(self, peer: UUID) -> None:
        # A new stream begins without the tunnels of the older one: each has to be requested, and allowed, again.
        self.forget(peer)
        number, deliveries = self.core.connect(peer, FullAccess())
        self.view[number] = {}
        self.apply(deliveries)
        self.connection[peer] = number

    @rule(peer=peers, body=st.binary(min_size=1, max_size=1))
    def update(self, peer: UUID, body: bytes) -> None:
        if peer in self.connection:
            self.node[peer] = CoordinatedNode(body)
            self.apply(self.core.handle(self.connection[peer], CoordinationRequest(node=CoordinatedNode(body))))

    @rule(peer=peers, other=peers)
    def add_tunnel(self, peer: UUID, other: UUID) -> None:
        if peer in self.connection and peer != other:
            self.tunnels.add((peer, other))
            self.apply(self.core.handle(self.connection[peer], CoordinationRequest(add_tunnel=other)))

    @rule(peer=peers)
    def leave(self, peer: UUID) -> None:
        if peer in self.connection:
            self.apply(self.core.handle(self.connection[peer], CoordinationRequest(disconnect=True)))
            self.forget(peer)

    @rule(peer=peers)
    def lose(self, peer: UUID) -> None:
        if peer in self.connection:
            number = self.connection[peer]
            self.apply(self.core.lose(number))
            self.ended.add(number)
            self.forget(peer)

    @rule(peer=peers, other=peers)
    def ready(self, peer: UUID, other: UUID) -> None:
        if peer in self.connection:
            self.apply(self.core.handle(self.connection[peer], CoordinationRequest(ready_for_handshake=(other,))))

    @invariant()
    def neighbours_are_known(self) -> None:
        for peer, number in self.connection.items():
            for other in self.node:
                joined = (peer, other) in self.tunnels or (other, peer) in self.tunnels
                if joined and other != peer:
                    assert self.view[number].get(other) == self.node[other]

    @invariant()
    def strangers_are_unknown(self) -> None:
        for peer, number in self.connection.items():
            for other in self.view[number]:
                assert (peer, other) in self.tunnels or (other, peer) in self.tunnels


CoordinatorMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestCoordinator = CoordinatorMachine.TestCase
