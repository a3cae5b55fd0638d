"""Two coordinators connected only by notices: updates that each sends its peers about peers of the other."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import msgspec
import pytest
import trio
import trio.testing

from coder.base.clock import SystemClock
from coder.coderd.services.network.replica_coordination import Bridge, CoordinatorMessage
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.listening import RESYNC
from coder.domain.network.coordination import Coordination, Delivery, NodeKind, Update
from coder.domain.network.coordination_rules import CoordinatedNode, CoordinationRequest, FullAccess
from coder.mesh.core.crypto.keys import PrivateKey
from coder.rpc.proto import tailnet_pb2
from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.postgres_server import fresh_database

AGENT, CLIENT = UUID(int=1), UUID(int=2)


class Replica:
    """A coordinator without streams; `updates` are received updates by peer."""

    def __init__(self, db: Any = None) -> None:
        self.core = Coordination()
        self.mailboxes = {}
        self.id = uuid4()
        self.bridge = Bridge(cast("Any", SimpleNamespace(db=db, clock=SystemClock())), self, self.id)
        self.updates: dict[UUID, list[Update]] = {}
        self.ended: list[UUID] = []

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            mailbox = self.mailboxes.get(delivery.connection)
            if mailbox is not None:
                mailbox.send_nowait(delivery)

    def connect(self, peer: UUID) -> int:
        number, deliveries = self.core.connect(peer, FullAccess())
        self.mailboxes[number] = SimpleNamespace(send_nowait=lambda delivery: self._record(peer, delivery))
        self.deliver(deliveries)
        self.bridge.peer_connected(peer)
        return number

    def _record(self, peer: UUID, delivery: Delivery) -> None:
        self.updates.setdefault(peer, []).extend(delivery.updates)
        if delivery.end:
            self.ended.append(peer)

    def ask(self, number: int, peer: UUID, request: CoordinationRequest) -> None:
        self.deliver(self.core.handle(number, request))
        if request.add_tunnel is not None:
            self.bridge.tunnel_requested(peer, request.add_tunnel)

    def leave(self, number: int, peer: UUID) -> None:
        self.deliver(self.core.lose(number))
        self.bridge.peer_disconnected(peer)

    def kinds(self, peer: UUID) -> list[tuple[UUID, NodeKind]]:
        return [(update.peer, update.kind) for update in self.updates.pop(peer, [])]


def exchange(*replicas: Replica) -> None:
    """Deliver notices until all outboxes are empty."""
    while any(replica.bridge._outbox for replica in replicas):
        for replica in replicas:
            notices, replica.bridge._outbox = replica.bridge._outbox, []
            for notice in notices:
                read = msgspec.json.decode(msgspec.json.encode(notice), type=type(notice))
                for other in replicas:
                    if other is not replica and read.to in {None, other.id}:
                        other.bridge._receive(read)


def two_replicas() -> tuple[Replica, Replica]:
    first, second = Replica(), Replica()
    for replica in (first, second):
        replica.bridge.set_others([first.id, second.id])
    exchange(first, second)
    return first, second


def connected_replicas() -> tuple[Replica, Replica, int, int]:
    """Return two replicas with an agent at the first and its client at the second."""
    first, second = two_replicas()
    agent, client = first.connect(AGENT), second.connect(CLIENT)
    first.ask(agent, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent")))
    second.ask(client, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client"), add_tunnel=AGENT))
    exchange(first, second)
    return first, second, agent, client


def test_peers_get_nodes_and_changes() -> None:
    first, second, agent, client = connected_replicas()
    assert second.updates[CLIENT][-1].node == CoordinatedNode(b"agent")
    assert first.updates[AGENT][-1].node == CoordinatedNode(b"client")
    first.ask(
        agent, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent elsewhere"), ready_for_handshake=(CLIENT,))
    )
    second.ask(client, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client elsewhere")))
    exchange(first, second)
    assert [update.kind for update in second.updates[CLIENT]][-2:] == [NodeKind.NODE, NodeKind.READY_FOR_HANDSHAKE]
    assert second.updates[CLIENT][-2].node == CoordinatedNode(b"agent elsewhere")
    assert first.updates[AGENT][-1].node == CoordinatedNode(b"client elsewhere")


def test_disconnect_reaches_other_replica() -> None:
    first, second, agent, client = connected_replicas()
    second.updates.clear()
    first.updates.clear()
    second.leave(client, CLIENT)
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.LOST)]
    assert not first.core.is_present(CLIENT)
    first.leave(agent, AGENT)
    exchange(first, second)
    assert not second.core.is_present(AGENT)


def test_revocation_reaches_other_replica() -> None:
    first, second, _agent, client = connected_replicas()
    second.leave(client, CLIENT)
    exchange(first, second)
    first.updates.clear()
    second.deliver(second.core.revoke(CLIENT, [AGENT]))
    second.bridge.peer_revoked(CLIENT, [AGENT])
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.DISCONNECTED)]


def test_revocation_spares_peer_reconnected_elsewhere() -> None:
    first, second, _agent, client = connected_replicas()
    second.leave(client, CLIENT)
    exchange(first, second)
    back = first.connect(CLIENT)
    first.ask(back, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client"), add_tunnel=AGENT))
    exchange(first, second)
    first.updates.clear()
    second.deliver(second.core.revoke(CLIENT, [AGENT]))
    second.bridge.peer_revoked(CLIENT, [AGENT])
    exchange(first, second)
    assert first.kinds(AGENT) == []


def test_revocation_after_reconnect_without_tunnel() -> None:
    first, second, _agent, client = connected_replicas()
    second.leave(client, CLIENT)
    exchange(first, second)
    second.connect(CLIENT)
    exchange(first, second)
    first.updates.clear()
    second.deliver(second.core.revoke(CLIENT, [AGENT]))
    second.bridge.peer_revoked(CLIENT, [AGENT])
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.DISCONNECTED)]


def test_same_key_under_new_id_displaces() -> None:
    """The table of keys has one owner for both; the older stream is broken."""
    first, second, _agent, _client = connected_replicas()
    key = PrivateKey.generate(os.urandom).public
    body = tailnet_pb2.Node(id=3, key=key.binary).SerializeToString()
    old, new = uuid4(), uuid4()
    held = CoordinatedNode(body, keys=(b"n" + key,))
    first.ask(first.connect(old), old, CoordinationRequest(node=held))
    second.ask(second.connect(new), new, CoordinationRequest(node=held, add_tunnel=AGENT))
    exchange(first, second)
    assert old in first.ended
    assert (new, NodeKind.NODE) in first.kinds(AGENT)


def test_removed_tunnel_keeps_others() -> None:
    first, second, _agent, client = connected_replicas()
    third = uuid4()
    other = first.connect(third)
    first.ask(other, third, CoordinationRequest(node=CoordinatedNode(b"third")))
    second.ask(client, CLIENT, CoordinationRequest(add_tunnel=third))
    exchange(first, second)
    first.updates.clear()
    second.ask(client, CLIENT, CoordinationRequest(remove_tunnel=AGENT))
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.DISCONNECTED)]
    assert first.core.is_present(CLIENT)
    second.ask(client, CLIENT, CoordinationRequest(remove_tunnel=third))
    exchange(first, second)
    assert not first.core.is_present(CLIENT)


def test_agent_moves_between_replicas() -> None:
    first, second, _agent, _client = connected_replicas()
    second.updates.clear()
    moved = second.connect(AGENT)
    second.ask(moved, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent here")))
    exchange(first, second)
    assert second.updates[CLIENT][-1].node == CoordinatedNode(b"agent here")
    assert first.ended == [AGENT]
    assert not first.core.is_present(AGENT)
    assert second.core.is_present(AGENT)


def test_dead_replica_loses_and_regains_peers() -> None:
    first, second, agent, _client = connected_replicas()
    second.updates.clear()
    second.bridge.set_others([second.id])
    assert second.kinds(CLIENT) == [(AGENT, NodeKind.LOST)]
    second.bridge.set_others([first.id, second.id])  # the replica was only slow
    exchange(first, second)
    assert second.kinds(CLIENT) == [(AGENT, NodeKind.NODE)]
    first.leave(agent, AGENT)


def test_single_replica_sends_no_notices() -> None:
    alone = Replica()
    alone.bridge.set_others([alone.id])
    number = alone.connect(CLIENT)
    alone.ask(number, CLIENT, CoordinationRequest(add_tunnel=AGENT))
    alone.leave(number, CLIENT)
    assert alone.bridge._outbox == []


@pytest.mark.parametrize("disconnected", [0, 1])
def test_gap_is_resent(disconnected: int) -> None:
    """The listening connection of either replica was lost for a moment."""
    first, second, agent, client = connected_replicas()
    first.ask(agent, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent elsewhere")))
    second.ask(client, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client elsewhere")))
    for replica in (first, second):
        replica.bridge._outbox.clear()  # the notices are lost
    (first, second)[disconnected].bridge.announce()
    exchange(first, second)
    assert second.updates[CLIENT][-1].node == CoordinatedNode(b"agent elsewhere")
    assert first.updates[AGENT][-1].node == CoordinatedNode(b"client elsewhere")


async def test_large_node_sent_by_row() -> None:
    """Both directions: the client's node with its tunnel, the agent's as an update, and later versions."""
    large, larger = (CoordinatedNode(os.urandom(size)) for size in (20_000, 60_000))
    async with fresh_database() as url, open_database(url) as db, trio.open_nursery() as nursery:
        first, second = Replica(db), Replica(db)
        for replica in (first, second):
            await nursery.start(replica.bridge.listen)
            nursery.start_soon(replica.bridge.send_notices)
        for replica in (first, second):
            replica.bridge.set_others([first.id, second.id])
        agent, client = first.connect(AGENT), second.connect(CLIENT)
        first.ask(agent, AGENT, CoordinationRequest(node=large))
        second.ask(client, CLIENT, CoordinationRequest(node=larger, add_tunnel=AGENT))
        await _until(lambda: _last(second, CLIENT) == large and _last(first, AGENT) == larger)
        second.ask(client, CLIENT, CoordinationRequest(node=large))
        await _until(lambda: _last(first, AGENT) == large)
        nursery.cancel_scope.cancel()


async def _until(condition: Callable[[], bool]) -> None:
    async def is_met() -> bool:
        return condition()

    await eventually(is_met)


def _last(replica: Replica, peer: UUID) -> CoordinatedNode | None:
    updates = replica.updates.get(peer)
    return updates[-1].node if updates else None


async def test_oversized_node_is_omitted() -> None:
    """The tunnel and the other notices are sent without it."""
    published: list[str] = []

    async def run(_publish: object, texts: list[str], nodes: object, _now: object) -> None:
        assert not nodes
        published.extend(texts)

    replica = Replica(SimpleNamespace(run=run))
    node = base64.b64encode(b"x" * 100_000).decode()
    update = CoordinatorMessage(uuid4(), 1, "update", peer=AGENT, other=CLIENT, node=node)
    tunnel = CoordinatorMessage(uuid4(), 2, "tunnel", peer=AGENT, other=CLIENT, node=node)
    await replica.bridge._publish([update, tunnel, CoordinatorMessage(uuid4(), 3, "here", peer=CLIENT)])
    notices = [json.loads(text) for text in published]
    assert [(notice["word"], notice.get("node")) for notice in notices] == [("tunnel", None), ("here", None)]


async def test_unreadable_row_keeps_tunnel() -> None:
    async def read(*_: object) -> None:
        raise OSError("the database is away")

    replica = Replica(SimpleNamespace(read=read))
    replica.connect(CLIENT)
    notice = CoordinatorMessage(uuid4(), 1, "tunnel", peer=AGENT, other=CLIENT, is_in_row=True)
    replica.bridge._receive(await replica.bridge._with_node(notice))
    assert replica.core.tunnels() == [(AGENT, CLIENT)]


ENDS: list[tuple[str, Callable[[Replica, int], None]]] = [
    ("cut", lambda home, _client: home.deliver(home.core.cut(CLIENT))),
    ("lost", lambda home, client: home.leave(client, CLIENT)),
    (
        "removed",
        lambda home, client: home.ask(client, CLIENT, CoordinationRequest(remove_tunnel=AGENT)),
    ),
]


@pytest.mark.parametrize("end", [end for _, end in ENDS], ids=[name for name, _ in ENDS])
@pytest.mark.parametrize("missed_by", ["sender", "receiver"])
def test_lost_removal_notice_is_repaired(end: Callable[[Replica, int], None], missed_by: str) -> None:
    agents, clients, _agent, client = connected_replicas()
    agents.updates.clear()
    end(clients, client)
    clients.bridge._outbox.clear()  # the notices are lost
    (clients if missed_by == "sender" else agents).bridge.announce()
    exchange(agents, clients)
    assert agents.core.tunnels() == []
    assert (CLIENT, NodeKind.DISCONNECTED) in agents.kinds(AGENT)


def test_resync_keeps_tunnels() -> None:
    agents, clients, _agent, _client = connected_replicas()
    agents.updates.clear()
    for replica in (agents, clients):
        replica.bridge.announce()
        exchange(agents, clients)
    assert agents.core.tunnels() == [(CLIENT, AGENT)]
    assert NodeKind.DISCONNECTED not in {kind for _, kind in agents.kinds(AGENT)}


async def test_removals_kept_until_sent(autojump_clock: trio.testing.MockClock) -> None:
    agents, clients, _agent, client = connected_replicas()
    failing, published = 2, list[str]()

    async def run(_publish: Any, texts: list[str], _nodes: Any, _now: Any) -> None:
        nonlocal failing
        failing -= 1
        if failing >= 0:
            raise OSError("the database is away")
        published.extend(texts)

    clients.bridge._ctx = cast("Any", SimpleNamespace(db=SimpleNamespace(run=run), clock=SystemClock()))
    clients.leave(client, CLIENT)
    clients.bridge.peer_connected(UUID(int=9))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clients.bridge.send_notices)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    words = [json.loads(text)["word"] for text in published]
    kept = words[: words.index("up")]
    assert "left" in kept and {"left", "update"} >= set(kept)
    assert agents.core.tunnels() == [(CLIENT, AGENT)]


async def test_failed_send_triggers_resync(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The pool had no connection for a moment; listening connections stayed open."""
    agents, clients = two_replicas()
    working, published = False, list[str]()

    async def run(_publish: Any, texts: list[str], _nodes: Any, _now: Any) -> None:
        if not working:
            raise OSError("the database is away")
        published.extend(texts)

    clients.bridge._ctx = cast("Any", SimpleNamespace(db=SimpleNamespace(run=run), clock=SystemClock()))
    agent, client = agents.connect(AGENT), clients.connect(CLIENT)
    agents.ask(agent, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent")))
    clients.ask(client, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client"), add_tunnel=AGENT))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clients.bridge.send_notices)
        await trio.sleep(10)
        assert agents.core.tunnels() == [] and published == []
        working = True
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    for text in published:
        agents.bridge._receive(msgspec.json.decode(text, type=CoordinatorMessage))
    assert agents.core.tunnels() == [(CLIENT, AGENT)]


async def test_gap_during_resync_keeps_tunnels() -> None:
    """The middle of another replica's state is missed; tunnels listed there are kept."""
    agents, clients, _agent, _client = connected_replicas()
    clients.bridge.announce()
    notices, clients.bridge._outbox = clients.bridge._outbox, []
    send, receive = trio.open_memory_channel[tuple[str, str]](100)
    for notice in notices:
        missed = notice.word == "tunnel"
        send.send_nowait(("", RESYNC if missed else msgspec.json.encode(notice).decode()))
    send.close()

    @asynccontextmanager
    async def listen(_channel: str) -> AsyncIterator[Any]:
        yield receive

    agents.bridge._ctx = cast("Any", SimpleNamespace(db=SimpleNamespace(listen=listen)))
    await agents.bridge.listen()
    assert agents.core.tunnels() == [(CLIENT, AGENT)]
