"""Conversations with the coordinator: updates between peers, and refusals."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from coder.domain.network.coordination import KEY_TAKEN, MAX_REVOKED, Coordination, Delivery, NodeKind, Update
from coder.domain.network.coordination_rules import (
    AgentAccess,
    ClientAccess,
    CoordinatedNode,
    CoordinationRequest,
    FullAccess,
)
from coder.domain.network.overlay import LEGACY_AGENT_ADDRESS, agent_address, service_address

AGENT, CLIENT, OTHER = UUID(int=0xA), UUID(int=0xC), UUID(int=0xE)


def node(text: str, *addresses: str) -> CoordinatedNode:
    return CoordinatedNode(text.encode(), addresses, addresses)


class Overlay:
    """A coordinator with one agent and one client."""

    def __init__(self) -> None:
        self.coordinator = Coordination()
        self.agent, _ = self.coordinator.connect(AGENT, AgentAccess(AGENT))
        self.client, _ = self.coordinator.connect(CLIENT, ClientAccess(AGENT))

    def agent_says(self, **what: Any) -> list[Delivery]:
        return self.coordinator.handle(self.agent, CoordinationRequest(**what))

    def client_says(self, **what: Any) -> list[Delivery]:
        return self.coordinator.handle(self.client, CoordinationRequest(**what))

    def joined(self) -> Overlay:
        self.agent_says(node=node("a1"))
        self.client_says(add_tunnel=AGENT)
        self.client_says(node=node("c1"))
        return self


def delivery(connection: int, peer: UUID, kind: NodeKind, reason: str, body: CoordinatedNode | None = None) -> Delivery:
    return Delivery(connection, (Update(peer, kind, reason, body),))


def test_tunnel_notifies_both_ends() -> None:
    o = Overlay()
    assert o.agent_says(node=node("a1")) == []
    assert o.client_says(add_tunnel=AGENT) == [delivery(o.client, AGENT, NodeKind.NODE, "add tunnel", node("a1"))]
    assert o.client_says(node=node("c1")) == [delivery(o.agent, CLIENT, NodeKind.NODE, "node update", node("c1"))]
    assert o.agent_says(node=node("a2")) == [delivery(o.client, AGENT, NodeKind.NODE, "node update", node("a2"))]


def test_tunnel_before_agent() -> None:
    coordinator = Coordination()
    client, _ = coordinator.connect(CLIENT, ClientAccess(AGENT))
    assert coordinator.handle(client, CoordinationRequest(node=node("c1"), add_tunnel=AGENT)) == []
    agent, out = coordinator.connect(AGENT, AgentAccess(AGENT))
    assert out == [delivery(agent, CLIENT, NodeKind.NODE, "init", node("c1"))]
    assert coordinator.handle(agent, CoordinationRequest(node=node("a1"))) == [
        delivery(client, AGENT, NodeKind.NODE, "node update", node("a1"))
    ]


def test_equal_nodes_are_sent_once() -> None:
    o = Overlay().joined()
    assert o.agent_says(node=node("a1")) == []
    assert o.client_says(add_tunnel=AGENT) == []


def test_ready_for_handshake_reaches_peer() -> None:
    o = Overlay().joined()
    assert o.agent_says(ready_for_handshake=(CLIENT,)) == [
        delivery(o.client, AGENT, NodeKind.READY_FOR_HANDSHAKE, "ready for handshake")
    ]
    assert o.agent_says(ready_for_handshake=(OTHER,)) == [
        Delivery(o.agent, error=f'ready for handshake error: you do not share a tunnel with "{OTHER}"')
    ]
    several = o.agent_says(ready_for_handshake=(OTHER, CLIENT, OTHER, OTHER))
    assert several == [
        Delivery(o.agent, error=f'ready for handshake error: you do not share a tunnel with "{OTHER}"'),
        delivery(o.client, AGENT, NodeKind.READY_FOR_HANDSHAKE, "ready for handshake"),
    ]


def test_lost_agent_reconnects_to_clients() -> None:
    o = Overlay().joined()
    assert o.coordinator.lose(o.agent) == [delivery(o.client, AGENT, NodeKind.LOST, "lost")]
    assert o.coordinator.lose(o.agent) == []
    agent, out = o.coordinator.connect(AGENT, AgentAccess(AGENT))
    assert out == [delivery(agent, CLIENT, NodeKind.NODE, "init", node("c1"))]
    again = o.coordinator.handle(agent, CoordinationRequest(node=node("a1")))
    assert again == [delivery(o.client, AGENT, NodeKind.NODE, "node update", node("a1"))]


def test_lost_client_loses_its_tunnels() -> None:
    o = Overlay().joined()
    assert o.coordinator.lose(o.client) == [delivery(o.agent, CLIENT, NodeKind.LOST, "lost")]
    client, out = o.coordinator.connect(CLIENT, ClientAccess(AGENT))
    assert out == []
    assert o.coordinator.handle(client, CoordinationRequest(node=node("c1"))) == []


def test_lost_client_can_be_revoked() -> None:
    o = Overlay().joined()
    o.coordinator.lose(o.client)
    assert o.coordinator.take_left_behind(CLIENT) == [AGENT]
    assert o.coordinator.take_left_behind(CLIENT) == []
    out = o.coordinator.revoke(CLIENT, [AGENT])
    assert out == [delivery(o.agent, CLIENT, NodeKind.DISCONNECTED, "no longer allowed")]


def test_reconnecting_agent_receives_revocation() -> None:
    o = Overlay().joined()
    o.coordinator.lose(o.client)
    o.coordinator.lose(o.agent)
    assert o.coordinator.revoke(CLIENT, [AGENT]) == []
    agent, out = o.coordinator.connect(AGENT, AgentAccess(AGENT))
    assert out == [delivery(agent, CLIENT, NodeKind.DISCONNECTED, "no longer allowed")]
    o.coordinator.lose(agent)
    assert o.coordinator.connect(AGENT, AgentAccess(AGENT))[1] == [], "once"


def test_reconnected_client_is_not_revoked() -> None:
    o = Overlay().joined()
    o.coordinator.lose(o.client)
    o.coordinator.lose(o.agent)
    o.coordinator.revoke(CLIENT, [AGENT])
    back, _ = o.coordinator.connect(CLIENT, ClientAccess(AGENT))
    o.coordinator.handle(back, CoordinationRequest(add_tunnel=AGENT))
    assert o.coordinator.revoke(CLIENT, [AGENT]) == []
    assert o.coordinator.connect(AGENT, AgentAccess(AGENT))[1] == []


def test_reconnected_client_loses_unrequested_tunnels() -> None:
    o = Overlay().joined()
    o.coordinator.lose(o.client)
    o.coordinator.connect(CLIENT, ClientAccess())
    out = o.coordinator.revoke(CLIENT, [AGENT])
    assert out == [delivery(o.agent, CLIENT, NodeKind.DISCONNECTED, "no longer allowed")]


def test_second_stream_inherits_no_tunnel() -> None:
    """A stream with a peer's id receives its destinations by requesting them, not through the first stream's
    requests."""
    o = Overlay().joined()
    second, out = o.coordinator.connect(CLIENT, ClientAccess())
    assert out == [
        Delivery(o.client, error="peer ID overwritten by new connection", end=True),
        delivery(o.agent, CLIENT, NodeKind.LOST, "lost"),
    ]
    assert o.coordinator.take_left_behind(CLIENT) == [AGENT]
    assert o.coordinator.handle(second, CoordinationRequest(node=node("other key"))) == []
    assert o.agent_says(node=node("a2")) == []
    assert o.coordinator.handle(second, CoordinationRequest(add_tunnel=AGENT)) != []


@pytest.mark.parametrize("kind", ["node", "disco"])
@pytest.mark.parametrize(
    "who", [AgentAccess(OTHER), ClientAccess(), FullAccess()], ids=lambda item: type(item).__name__
)
def test_key_of_connected_peer_is_refused(who: Any, kind: str) -> None:
    coordinator = Coordination()
    first, _ = coordinator.connect(AGENT, AgentAccess(AGENT))
    second, _ = coordinator.connect(OTHER, who)
    keys = (b"nKEY", b"dKEY")
    assert coordinator.handle(first, CoordinationRequest(node=CoordinatedNode(b"1", keys=keys))) == []
    taken = (b"nKEY", b"dOTHER") if kind == "node" else (b"nOTHER", b"dKEY")
    out = coordinator.handle(second, CoordinationRequest(node=CoordinatedNode(b"2", keys=taken)))
    assert out == [Delivery(second, error=KEY_TAKEN, end=True)]
    assert not coordinator.is_present(OTHER)
    coordinator.lose(first)
    third, _ = coordinator.connect(OTHER, who)
    assert coordinator.handle(third, CoordinationRequest(node=CoordinatedNode(b"2", keys=taken))) == [], "it is free"


def test_changed_key_frees_old_key() -> None:
    coordinator = Coordination()
    first, _ = coordinator.connect(AGENT, AgentAccess(AGENT))
    second, _ = coordinator.connect(OTHER, ClientAccess())
    for keys in [(b"n1",), (b"n2",)]:
        assert coordinator.handle(first, CoordinationRequest(node=CoordinatedNode(keys[0], keys=keys))) == []
    assert coordinator.handle(second, CoordinationRequest(node=CoordinatedNode(b"", keys=(b"n1",)))) == []
    assert coordinator.holder_of([b"n2"], OTHER) == AGENT


def test_graceful_disconnect_removes_tunnels() -> None:
    o = Overlay().joined()
    o.client_says(disconnect=True)
    assert o.coordinator.take_left_behind(CLIENT) == []


def test_pending_revocations_are_bounded() -> None:
    coordinator = Coordination()
    coordinator.revoke(CLIENT, [UUID(int=number) for number in range(100, 100 + MAX_REVOKED + 1)])
    assert coordinator.connect(UUID(int=100), FullAccess())[1] == []
    assert coordinator.connect(UUID(int=101), FullAccess())[1] != []


def test_graceful_disconnect_ends_the_stream() -> None:
    o = Overlay().joined()
    assert o.client_says(disconnect=True) == [
        delivery(o.agent, CLIENT, NodeKind.DISCONNECTED, "graceful disconnect"),
        Delivery(o.client, end=True),
    ]
    assert o.client_says(node=node("late")) == []


def test_removing_a_tunnel_tells_both() -> None:
    o = Overlay().joined()
    assert o.client_says(remove_tunnel=AGENT) == [
        delivery(o.client, AGENT, NodeKind.DISCONNECTED, "remove tunnel"),
        delivery(o.agent, CLIENT, NodeKind.DISCONNECTED, "remove tunnel"),
    ]
    assert o.client_says(remove_tunnel=AGENT) == []


def test_second_stream_overwrites_first() -> None:
    o = Overlay().joined()
    second, out = o.coordinator.connect(AGENT, AgentAccess(AGENT))
    assert out == [
        Delivery(o.agent, error="peer ID overwritten by new connection", end=True),
        delivery(second, CLIENT, NodeKind.NODE, "init", node("c1")),
    ]
    assert o.agent_says(node=node("old")) == []
    assert o.coordinator.lose(o.agent) == []


def test_closing_notifies_every_peer() -> None:
    o = Overlay().joined()
    assert o.coordinator.close() == [
        Delivery(o.agent, error="coordinator closed", end=True),
        Delivery(o.client, error="coordinator closed", end=True),
    ]


def test_overflowing_peer_is_dropped() -> None:
    o = Overlay().joined()
    assert o.coordinator.overflow(o.client) == [
        Delivery(o.client, error="failed to update tunnel peer mapping", end=True),
        delivery(o.agent, CLIENT, NodeKind.DISCONNECTED, "failed to update tunnel peer mapping"),
    ]


def test_batches_are_split() -> None:
    coordinator = Coordination()
    for number in range(1500):
        client, _ = coordinator.connect(UUID(int=number + 100), FullAccess())
        coordinator.handle(client, CoordinationRequest(node=node(f"{number}"), add_tunnel=AGENT))
    _, out = coordinator.connect(AGENT, AgentAccess(AGENT))
    assert [len(delivery.updates) for delivery in out] == [1024, 476]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (CoordinationRequest(add_tunnel=CLIENT), "agents cannot open tunnels"),
        (CoordinationRequest(node=node("a", "fd7a::1/128")), "Addresses: invalid node address, got fd7a::1"),
        (
            CoordinationRequest(node=node("a", f"{agent_address(AGENT)}/64")),
            "Addresses: invalid address bits, expected 128, got 64",
        ),
        (CoordinationRequest(node=CoordinatedNode(b"", (), ("x/128",))), "AllowedIPs: invalid node address, got x"),
    ],
)
def test_agents_are_refused(request_: CoordinationRequest, text: str) -> None:
    o = Overlay().joined()
    assert o.coordinator.handle(o.agent, request_) == [
        Delivery(o.agent, error=f"authorization: {text}", end=True),
        delivery(o.client, AGENT, NodeKind.LOST, "lost"),
    ]


def test_agents_claim_their_addresses() -> None:
    o = Overlay()
    for address in (agent_address(AGENT), service_address(AGENT), LEGACY_AGENT_ADDRESS):
        assert o.agent_says(node=node("a", f"{address}/128")) == []


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (CoordinationRequest(add_tunnel=OTHER), f"invalid agent id, expected {AGENT}, got {OTHER}"),
        (CoordinationRequest(ready_for_handshake=(AGENT,)), "clients may not send ready_for_handshake"),
        (CoordinationRequest(node=node("c", "fd7a::1/64")), "Addresses: invalid address bits, expected 128, got 64"),
    ],
)
def test_clients_are_refused(request_: CoordinationRequest, text: str) -> None:
    o = Overlay()
    assert o.coordinator.handle(o.client, request_) == [Delivery(o.client, error=f"authorization: {text}", end=True)]
