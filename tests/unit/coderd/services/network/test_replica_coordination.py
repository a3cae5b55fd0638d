"""Two coordinators joined by their notices alone: what each tells its peers of those at the other."""

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
    """A coordinator without streams: `told` are the updates of each peer."""

    def __init__(self, db: Any = None) -> None:
        self.core = Coordination()
        self.mailboxes = {}
        self.id = uuid4()
        self.bridge = Bridge(cast("Any", SimpleNamespace(db=db, clock=SystemClock())), self, self.id)
        self.told: dict[UUID, list[Update]] = {}
        self.ended: list[UUID] = []

    def hand_out(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            mailbox = self.mailboxes.get(delivery.connection)
            if mailbox is not None:
                mailbox.send_nowait(delivery)

    def connect(self, peer: UUID) -> int:
        number, deliveries = self.core.connect(peer, FullAccess())
        self.mailboxes[number] = SimpleNamespace(send_nowait=lambda delivery: self._tell(peer, delivery))
        self.hand_out(deliveries)
        self.bridge.arrived(peer)
        return number

    def _tell(self, peer: UUID, delivery: Delivery) -> None:
        self.told.setdefault(peer, []).extend(delivery.updates)
        if delivery.end:
            self.ended.append(peer)

    def ask(self, number: int, peer: UUID, request: CoordinationRequest) -> None:
        self.hand_out(self.core.handle(number, request))
        if request.add_tunnel is not None:
            self.bridge.wants(peer, request.add_tunnel)

    def leave(self, number: int, peer: UUID) -> None:
        self.hand_out(self.core.lose(number))
        self.bridge.left(peer)

    def kinds(self, peer: UUID) -> list[tuple[UUID, NodeKind]]:
        return [(update.peer, update.kind) for update in self.told.pop(peer, [])]


def exchange(*replicas: Replica) -> None:
    """Delivers notices until nobody has anything to say."""
    while any(one.bridge._waiting for one in replicas):
        for one in replicas:
            notices, one.bridge._waiting = one.bridge._waiting, []
            for notice in notices:
                read = msgspec.json.decode(msgspec.json.encode(notice), type=type(notice))
                for other in replicas:
                    if other is not one and read.to in {None, other.id}:
                        other.bridge._hear(read)


def two() -> tuple[Replica, Replica]:
    first, second = Replica(), Replica()
    for one in (first, second):
        one.bridge.set_others([first.id, second.id])
    exchange(first, second)
    return first, second


def joined() -> tuple[Replica, Replica, int, int]:
    """An agent at the first, its client at the second."""
    first, second = two()
    agent, client = first.connect(AGENT), second.connect(CLIENT)
    first.ask(agent, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent")))
    second.ask(client, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client"), add_tunnel=AGENT))
    exchange(first, second)
    return first, second, agent, client


def test_both_hear_of_each_other_and_of_changes() -> None:
    first, second, agent, client = joined()
    assert second.told[CLIENT][-1].node == CoordinatedNode(b"agent")
    assert first.told[AGENT][-1].node == CoordinatedNode(b"client")
    first.ask(
        agent, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent elsewhere"), ready_for_handshake=(CLIENT,))
    )
    second.ask(client, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client elsewhere")))
    exchange(first, second)
    assert [update.kind for update in second.told[CLIENT]][-2:] == [NodeKind.NODE, NodeKind.READY_FOR_HANDSHAKE]
    assert second.told[CLIENT][-2].node == CoordinatedNode(b"agent elsewhere")
    assert first.told[AGENT][-1].node == CoordinatedNode(b"client elsewhere")


def test_who_leaves_is_gone_at_the_other() -> None:
    first, second, agent, client = joined()
    second.told.clear()
    first.told.clear()
    second.leave(client, CLIENT)
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.LOST)]
    assert not first.core.is_present(CLIENT)
    first.leave(agent, AGENT)
    exchange(first, second)
    assert not second.core.is_present(AGENT)


def test_who_was_lost_is_shut_out_of_an_agent_at_the_other() -> None:
    first, second, _agent, client = joined()
    second.leave(client, CLIENT)
    exchange(first, second)
    first.told.clear()
    second.hand_out(second.core.revoke(CLIENT, [AGENT]))
    second.bridge.revoked(CLIENT, [AGENT])
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.DISCONNECTED)]


def test_who_came_back_at_another_replica_keeps_its_tunnels() -> None:
    first, second, _agent, client = joined()
    second.leave(client, CLIENT)
    exchange(first, second)
    back = first.connect(CLIENT)
    first.ask(back, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client"), add_tunnel=AGENT))
    exchange(first, second)
    first.told.clear()
    second.hand_out(second.core.revoke(CLIENT, [AGENT]))
    second.bridge.revoked(CLIENT, [AGENT])
    exchange(first, second)
    assert first.kinds(AGENT) == []


def test_who_came_back_without_a_tunnel_is_shut_out_of_it_at_the_other() -> None:
    first, second, _agent, client = joined()
    second.leave(client, CLIENT)
    exchange(first, second)
    second.connect(CLIENT)
    exchange(first, second)
    first.told.clear()
    second.hand_out(second.core.revoke(CLIENT, [AGENT]))
    second.bridge.revoked(CLIENT, [AGENT])
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.DISCONNECTED)]


def test_a_program_under_a_new_id_at_the_other_replica_displaces_its_old_one() -> None:
    """The table of keys said that both are of one owner; the older stream is a broken one."""
    first, second, _agent, _client = joined()
    key = PrivateKey.generate(os.urandom).public
    body = tailnet_pb2.Node(id=3, key=key.binary).SerializeToString()
    old, new = uuid4(), uuid4()
    held = CoordinatedNode(body, keys=(b"n" + key,))
    first.ask(first.connect(old), old, CoordinationRequest(node=held))
    second.ask(second.connect(new), new, CoordinationRequest(node=held, add_tunnel=AGENT))
    exchange(first, second)
    assert old in first.ended
    assert (new, NodeKind.NODE) in first.kinds(AGENT)


def test_a_tunnel_given_up_leaves_others_of_the_client() -> None:
    first, second, _agent, client = joined()
    third = uuid4()
    other = first.connect(third)
    first.ask(other, third, CoordinationRequest(node=CoordinatedNode(b"third")))
    second.ask(client, CLIENT, CoordinationRequest(add_tunnel=third))
    exchange(first, second)
    first.told.clear()
    second.ask(client, CLIENT, CoordinationRequest(remove_tunnel=AGENT))
    exchange(first, second)
    assert first.kinds(AGENT) == [(CLIENT, NodeKind.DISCONNECTED)]
    assert first.core.is_present(CLIENT)
    second.ask(client, CLIENT, CoordinationRequest(remove_tunnel=third))
    exchange(first, second)
    assert not first.core.is_present(CLIENT)


def test_an_agent_that_moves_is_found_again() -> None:
    first, second, _agent, _client = joined()
    second.told.clear()
    moved = second.connect(AGENT)
    second.ask(moved, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent here")))
    exchange(first, second)
    assert second.told[CLIENT][-1].node == CoordinatedNode(b"agent here")
    assert first.ended == [AGENT]
    assert not first.core.is_present(AGENT)
    assert second.core.is_present(AGENT)


def test_what_a_dead_replica_had_is_lost_and_comes_back() -> None:
    first, second, agent, _client = joined()
    second.told.clear()
    second.bridge.set_others([second.id])
    assert second.kinds(CLIENT) == [(AGENT, NodeKind.LOST)]
    second.bridge.set_others([first.id, second.id])  # it was only slow
    exchange(first, second)
    assert second.kinds(CLIENT) == [(AGENT, NodeKind.NODE)]
    first.leave(agent, AGENT)


def test_alone_nothing_is_said() -> None:
    alone = Replica()
    alone.bridge.set_others([alone.id])
    number = alone.connect(CLIENT)
    alone.ask(number, CLIENT, CoordinationRequest(add_tunnel=AGENT))
    alone.leave(number, CLIENT)
    assert alone.bridge._waiting == []


@pytest.mark.parametrize("deaf", [0, 1])
def test_what_was_said_in_a_gap_is_said_anew(deaf: int) -> None:
    """The listening connection of either was lost for a moment, and came back."""
    first, second, agent, client = joined()
    first.ask(agent, AGENT, CoordinationRequest(node=CoordinatedNode(b"agent elsewhere")))
    second.ask(client, CLIENT, CoordinationRequest(node=CoordinatedNode(b"client elsewhere")))
    for one in (first, second):
        one.bridge._waiting.clear()  # nobody heard
    (first, second)[deaf].bridge.announce()
    exchange(first, second)
    assert second.told[CLIENT][-1].node == CoordinatedNode(b"agent elsewhere")
    assert first.told[AGENT][-1].node == CoordinatedNode(b"client elsewhere")


async def test_a_node_too_large_for_a_notice_is_told_by_a_row() -> None:
    """Both ways: of the client with the tunnel it asks for, of the agent as an update. And later ones, too."""
    large, larger = (CoordinatedNode(os.urandom(size)) for size in (20_000, 60_000))
    async with fresh_database() as url, open_database(url) as db, trio.open_nursery() as nursery:
        first, second = Replica(db), Replica(db)
        for one in (first, second):
            await nursery.start(one.bridge.listen)
            nursery.start_soon(one.bridge.speak)
        for one in (first, second):
            one.bridge.set_others([first.id, second.id])
        agent, client = first.connect(AGENT), second.connect(CLIENT)
        first.ask(agent, AGENT, CoordinationRequest(node=large))
        second.ask(client, CLIENT, CoordinationRequest(node=larger, add_tunnel=AGENT))
        await _until(lambda: _last(second, CLIENT) == large and _last(first, AGENT) == larger)
        second.ask(client, CLIENT, CoordinationRequest(node=large))
        await _until(lambda: _last(first, AGENT) == large)
        nursery.cancel_scope.cancel()


async def _until(look: Callable[[], bool]) -> None:
    async def found() -> bool:
        return look()

    await eventually(found)


def _last(replica: Replica, peer: UUID) -> CoordinatedNode | None:
    told = replica.told.get(peer)
    return told[-1].node if told else None


async def test_a_node_that_nobody_has_stays_untold() -> None:
    """And its tunnel, and those beside it, are told."""
    published: list[str] = []

    async def run(_publish: object, texts: list[str], nodes: object, _now: object) -> None:
        assert not nodes
        published.extend(texts)

    replica = Replica(SimpleNamespace(run=run))
    node = base64.b64encode(b"x" * 100_000).decode()
    update = CoordinatorMessage(uuid4(), 1, "update", peer=AGENT, other=CLIENT, node=node)
    tunnel = CoordinatorMessage(uuid4(), 2, "tunnel", peer=AGENT, other=CLIENT, node=node)
    await replica.bridge._publish([update, tunnel, CoordinatorMessage(uuid4(), 3, "here", peer=CLIENT)])
    told = [json.loads(text) for text in published]
    assert [(one["word"], one.get("node")) for one in told] == [("tunnel", None), ("here", None)]


async def test_a_row_that_cannot_be_read_leaves_the_tunnel() -> None:
    async def read(*_: object) -> None:
        raise OSError("the database is away")

    replica = Replica(SimpleNamespace(read=read))
    replica.connect(CLIENT)
    notice = CoordinatorMessage(uuid4(), 1, "tunnel", peer=AGENT, other=CLIENT, is_in_row=True)
    replica.bridge._hear(await replica.bridge._with_node(notice))
    assert replica.core.tunnels() == [(AGENT, CLIENT)]


ENDS: list[tuple[str, Callable[[Replica, int], None]]] = [
    ("cut", lambda home, _client: home.hand_out(home.core.cut(CLIENT))),
    ("lost", lambda home, client: home.leave(client, CLIENT)),
    (
        "removed",
        lambda home, client: home.ask(client, CLIENT, CoordinationRequest(remove_tunnel=AGENT)),
    ),
]


@pytest.mark.parametrize("end", [end for _, end in ENDS], ids=[name for name, _ in ENDS])
@pytest.mark.parametrize("who_missed", ["speaker", "listener"])
def test_the_end_of_a_tunnel_is_heard_though_its_notice_was_lost(
    end: Callable[[Replica, int], None], who_missed: str
) -> None:
    agents, clients, _agent, client = joined()
    agents.told.clear()
    end(clients, client)
    clients.bridge._waiting.clear()  # nobody heard
    (clients if who_missed == "speaker" else agents).bridge.announce()
    exchange(agents, clients)
    assert agents.core.tunnels() == []
    assert (CLIENT, NodeKind.DISCONNECTED) in agents.kinds(AGENT)


def test_saying_everything_ends_nothing_that_is_there() -> None:
    agents, clients, _agent, _client = joined()
    agents.told.clear()
    for one in (agents, clients):
        one.bridge.announce()
        exchange(agents, clients)
    assert agents.core.tunnels() == [(CLIENT, AGENT)]
    assert NodeKind.DISCONNECTED not in {kind for _, kind in agents.kinds(AGENT)}


async def test_what_takes_away_is_kept_until_it_was_said(autojump_clock: trio.testing.MockClock) -> None:
    agents, clients, _agent, client = joined()
    failing, published = 2, list[str]()

    async def run(_publish: Any, texts: list[str], _nodes: Any, _now: Any) -> None:
        nonlocal failing
        failing -= 1
        if failing >= 0:
            raise OSError("the database is away")
        published.extend(texts)

    clients.bridge._ctx = cast("Any", SimpleNamespace(db=SimpleNamespace(run=run), clock=SystemClock()))
    clients.leave(client, CLIENT)
    clients.bridge.arrived(UUID(int=9))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clients.bridge.speak)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    words = [json.loads(text)["word"] for text in published]
    kept = words[: words.index("up")]
    assert "left" in kept and {"left", "update"} >= set(kept)
    assert agents.core.tunnels() == [(CLIENT, AGENT)]


async def test_what_was_not_said_is_said_anew_though_nobody_lost_his_ears(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The pool had no connection for a moment; those that listen live on."""
    agents, clients = two()
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
        nursery.start_soon(clients.bridge.speak)
        await trio.sleep(10)
        assert agents.core.tunnels() == [] and published == []
        working = True
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    for text in published:
        agents.bridge._hear(msgspec.json.decode(text, type=CoordinatorMessage))
    assert agents.core.tunnels() == [(CLIENT, AGENT)]


async def test_what_was_named_before_a_gap_ends_nothing_after_it() -> None:
    """Of everything another replica said the middle was missed: what stood there is not over."""
    agents, clients, _agent, _client = joined()
    clients.bridge.announce()
    told, clients.bridge._waiting = clients.bridge._waiting, []
    send, receive = trio.open_memory_channel[tuple[str, str]](100)
    for notice in told:
        missed = notice.word == "tunnel"
        send.send_nowait(("", RESYNC if missed else msgspec.json.encode(notice).decode()))
    send.close()

    @asynccontextmanager
    async def listen(_channel: str) -> AsyncIterator[Any]:
        yield receive

    agents.bridge._ctx = cast("Any", SimpleNamespace(db=SimpleNamespace(listen=listen)))
    await agents.bridge.listen()
    assert agents.core.tunnels() == [(CLIENT, AGENT)]
