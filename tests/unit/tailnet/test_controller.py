"""The controller with a fake node and a real coordinator: messages, and their effects on the node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import IPv6Address
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio
import trio.testing

from coder.coderd.services.network.coordinator import Coordinator
from coder.coderd.services.network.tailnet_rpc import TailnetPeer, TailnetService
from coder.domain.network.coordination_rules import AgentAccess, ClientAccess
from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.description import SelfInfo
from coder.rpc.errors import RpcClosed
from coder.rpc.session import Session, open_session
from coder.tailnet.addresses import agent_addresses, random_address
from coder.tailnet.controller import Controller, open_controller
from coder.tailnet.reconnect import keep_coordinated

AGENT = UUID(int=0xA, version=4)
MAP = DerpMap({999: DerpRegion(999, "coder", "Coder", (DerpNode("999b", 999, "127.0.0.1", stun_port=-1),), True)})


class FakeNode:
    """Records its calls."""

    def __init__(self, letter: bytes, addresses: tuple[IPv6Address, ...]) -> None:
        self.self_info = SelfInfo(
            PublicKey(letter * 32),
            PublicKey(letter.upper() * 32),
            preferred_derp=0,
            derp_latency={"999-v4": 0.002},
            endpoints=(UdpAddress("192.0.2.1", 4),),
            forced_websocket={},
            addresses=addresses,
        )
        self.installed: dict[PublicKey, Any] = {}
        self.derp_map: DerpMap | None = None
        self._watchers: list[trio.MemorySendChannel[Any]] = []
        self._changed = trio.Event()

    def self_changed(self) -> trio.MemoryReceiveChannel[Any]:
        send, receive = trio.open_memory_channel[Any](10)
        self._watchers.append(send)
        return receive

    def change(self, **fields: Any) -> None:
        self.self_info = replace(self.self_info, **fields)
        for watcher in self._watchers:
            try:
                watcher.send_nowait(self.self_info)
            except trio.BrokenResourceError:
                pass

    def set_derp_map(self, derp_map: DerpMap) -> None:
        self.derp_map = derp_map

    def set_peer(self, config: Any) -> None:
        self.installed[config.public_key] = config

    def remove_peer(self, public_key: PublicKey) -> None:
        self.installed.pop(public_key, None)

    def last_handshake(self, public_key: PublicKey) -> float | None:
        return None

    async def wait_reachable(self, address: IPv6Address) -> float:
        return 0.0


def fake_context() -> Any:
    """Minimal server context: a coordinator and a relay map."""
    relay = SimpleNamespace()
    services = SimpleNamespace(relay_map=SimpleNamespace(current=MAP, proxies={}), relay=relay)
    ctx: Any = SimpleNamespace(services=services, clock=None)
    this_replica: Any = SimpleNamespace(id=uuid4())
    relay.coordinator = Coordinator(ctx, this_replica)
    return ctx


@asynccontextmanager
async def session_of(ctx: Any, peer: TailnetPeer) -> AsyncIterator[Session]:
    ours, theirs = trio.testing.memory_stream_pair()
    async with (
        open_session(theirs, "server") as server,
        open_session(ours, "client") as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(server.serve, TailnetService(ctx, peer).handlers())
        yield client
        nursery.cancel_scope.cancel()


async def coordinate(controller: Controller, ctx: Any, peer: TailnetPeer) -> None:
    async with session_of(ctx, peer) as session:
        with pytest.raises(RpcClosed):
            await controller.run(session)


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)


async def test_peers_connect(autojump_clock: trio.testing.MockClock) -> None:
    ctx = fake_context()
    agent_node, client_node = FakeNode(b"a", agent_addresses(AGENT)), FakeNode(b"c", (random_address(),))
    async with (
        open_controller(agent_node, "destination", number=1, server_url="http://example.com:8080") as agent,
        open_controller(client_node, "source", number=2) as client,
        trio.open_nursery() as nursery,
    ):
        client.add_tunnel(AGENT)
        nursery.start_soon(coordinate, agent, ctx, TailnetPeer(AGENT, AgentAccess(AGENT)))
        nursery.start_soon(coordinate, client, ctx, TailnetPeer(UUID(int=0xC), ClientAccess(AGENT)))
        await quiet()
        assert not agent_node.installed, "nothing is sent before a home relay is known"
        assert agent_node.derp_map is not None and agent_node.derp_map.regions[999].nodes[0].host_name == "example.com"
        assert agent_node.derp_map is not None and agent_node.derp_map.regions[999].nodes[0].derp_port == 8080
        client_node.change(preferred_derp=999)
        agent_node.change(preferred_derp=999)
        await quiet()
        config = client_node.installed[agent_node.self_info.public_key]
        assert config.keepalive
        assert config.home_derp == 999
        assert config.endpoints == ("192.0.2.1:4",)
        assert not agent_node.installed[client_node.self_info.public_key].keepalive
        assert client.public_key_of(AGENT) == agent_node.self_info.public_key
        assert ctx.services.relay.coordinator.latency_of(AGENT) == {"Coder": {"preferred": True, "latency_ms": 2.0}}

        agent_node.change(endpoints=(UdpAddress("192.0.2.9", 4),))
        await quiet()
        assert client_node.installed[agent_node.self_info.public_key].endpoints == ("192.0.2.9:4",)

        await client.disconnect()
        await quiet()
        assert not agent_node.installed
        nursery.cancel_scope.cancel()


async def test_disabled_direct_hides_endpoints(autojump_clock: trio.testing.MockClock) -> None:
    ctx = fake_context()
    agent_node, client_node = FakeNode(b"a", agent_addresses(AGENT)), FakeNode(b"c", (random_address(),))
    agent_node.change(preferred_derp=999)
    client_node.change(preferred_derp=999)
    async with (
        open_controller(agent_node, "destination", number=1) as agent,
        open_controller(client_node, "source", number=2, direct=False) as client,
        trio.open_nursery() as nursery,
    ):
        client.add_tunnel(AGENT)
        nursery.start_soon(coordinate, agent, ctx, TailnetPeer(AGENT, AgentAccess(AGENT)))
        nursery.start_soon(coordinate, client, ctx, TailnetPeer(UUID(int=0xC), ClientAccess(AGENT)))
        await quiet()
        assert agent_node.installed[client_node.self_info.public_key].endpoints == ()
        assert client_node.installed[agent_node.self_info.public_key].endpoints == ()
        nursery.cancel_scope.cancel()


async def test_lost_peers_expire_after_15_minutes(autojump_clock: trio.testing.MockClock) -> None:
    ctx = fake_context()
    agent_node, client_node = FakeNode(b"a", agent_addresses(AGENT)), FakeNode(b"c", (random_address(),))
    agent_node.change(preferred_derp=999)
    client_node.change(preferred_derp=999)
    async with (
        open_controller(agent_node, "destination", number=1) as agent,
        open_controller(client_node, "source", number=2) as client,
    ):
        client.add_tunnel(AGENT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(coordinate, agent, ctx, TailnetPeer(AGENT, AgentAccess(AGENT)))
            nursery.start_soon(coordinate, client, ctx, TailnetPeer(UUID(int=0xC), ClientAccess(AGENT)))
            await quiet()
            assert agent_node.installed
            ctx.services.relay.coordinator.close()
        assert agent_node.installed
        assert client_node.installed
        await trio.sleep(899)
        assert agent_node.installed
        await trio.sleep(2)
        assert not agent_node.installed
        assert not client_node.installed


async def test_reconnect_sends_everything(autojump_clock: trio.testing.MockClock) -> None:
    agent_node, client_node = FakeNode(b"a", agent_addresses(AGENT)), FakeNode(b"c", (random_address(),))
    agent_node.change(preferred_derp=999)
    client_node.change(preferred_derp=999)
    contexts = [fake_context()]

    def connect_as(peer: TailnetPeer) -> Any:
        return lambda _token: session_of(contexts[-1], peer)

    async with (
        open_controller(agent_node, "destination", number=1) as agent,
        open_controller(client_node, "source", number=2) as client,
        trio.open_nursery() as nursery,
    ):
        client.add_tunnel(AGENT)
        nursery.start_soon(keep_coordinated, agent, connect_as(TailnetPeer(AGENT, AgentAccess(AGENT))))
        nursery.start_soon(keep_coordinated, client, connect_as(TailnetPeer(UUID(int=0xC), ClientAccess(AGENT))))
        await quiet()
        contexts.append(fake_context())
        contexts[0].services.relay.coordinator.close()
        await trio.sleep(1)
        agent_node.change(endpoints=())
        await quiet()
        assert client_node.installed[agent_node.self_info.public_key].endpoints == ()
        nursery.cancel_scope.cancel()


async def test_rejected_requests_end_stream(autojump_clock: trio.testing.MockClock) -> None:
    ctx = fake_context()
    node = FakeNode(b"c", (random_address(),))
    async with open_controller(node, "source", number=2) as client, trio.open_nursery() as nursery:
        client.add_tunnel(UUID(int=1))

        async def run() -> None:
            async with session_of(ctx, TailnetPeer(UUID(int=0xC), ClientAccess(AGENT))) as session:
                with pytest.raises(RpcClosed, match="coordinator: authorization: invalid agent id"):
                    await client.run(session)
            nursery.cancel_scope.cancel()

        nursery.start_soon(run)
