"""Two nodes behind NAT routers that let nothing in: hole punching by STUN, disco and call-me-maybe over the relay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trio

from tests.kit.network import network_namespaces
from tests.kit.network.overlay_process_client import OverlayProcess, introduce, mesh_process, moved, until_direct

PATIENCE = 60
"""Seconds any wait may take on a busy machine."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(network_namespaces.missing_tools() != "", reason=network_namespaces.missing_tools()),
]


@asynccontextmanager
async def nodes(
    world: network_namespaces.NatNetwork,
    client_at: str = "10.77.0.3",
    prepare: Callable[[OverlayProcess, OverlayProcess], None] = lambda _client, _agent: None,
) -> AsyncIterator[tuple[OverlayProcess, OverlayProcess]]:
    """(client, agent), introduced once both know what STUN has to say and `prepare` was called."""

    def inside(host: str) -> Callable[[Sequence[str]], list[str]]:
        return lambda command: world.argv(host, command)

    async with mesh_process(inside("srv"), "relay", "0.0.0.0") as relay:
        told = await relay.wait(PATIENCE, lambda got: "port" in got)
        where = (network_namespaces.SERVER, str(told["port"]), str(told["stun"]))
        async with (
            mesh_process(inside("client"), "node", "1", *where) as client,
            mesh_process(inside("agent"), "node", "2", *where) as agent,
        ):
            for node, mapped in ((client, f"{client_at}:"), (agent, "10.77.0.2:")):
                await node.wait(PATIENCE, lambda got, seen=mapped: seen in str(got.get("info")))  # type: ignore[misc]
            prepare(client, agent)
            await introduce(client, agent)
            yield client, agent


async def test_transfer_survives_closed_nat_mapping() -> None:
    with network_namespaces.open_nat_network() as world:
        async with nodes(world) as (client, agent):
            await agent.tell(serve=5000)
            await agent.wait(PATIENCE, lambda got: "serving" in got)
            await client.tell(send=5000, to=2, rate=2_000_000)
            await client.wait(PATIENCE, lambda got: got.get("path") == "direct")
            assert client.latest["endpoint"].startswith("10.77.0.2:")
            world.drop_udp()
            before = agent.latest.get("received", 0)
            await agent.wait(PATIENCE, lambda got: moved(got, "received", before, 500_000))
            await client.wait(PATIENCE, lambda got: got["path"] != "direct")
            world.allow_udp()
            await until_direct(client, PATIENCE)
            await client.tell(enough=True)
            await agent.wait(PATIENCE, lambda got: "finished" in got)
            await client.wait(PATIENCE, lambda got: "done" in got)
            assert agent.latest["sha256"] == client.latest["sha256"]


async def test_two_symmetric_nats_use_relay() -> None:
    with network_namespaces.open_nat_network(hard=("nata", "natb")) as world:
        async with nodes(world) as (client, agent):
            await agent.tell(serve=5000)
            await agent.wait(PATIENCE, lambda got: "serving" in got)
            await client.tell(send=5000, to=2, bytes=6_000_000, rate=2_000_000)
            await agent.wait(PATIENCE, lambda got: "finished" in got)
            await client.wait(PATIENCE, lambda got: "done" in got)
            assert client.latest["path"] == "relayed"
            assert client.latest["direct"] == 0
            assert agent.latest["sha256"] == client.latest["sha256"]


@pytest.mark.parametrize("turns", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["turned", "dropped"])
async def test_hairpin_nat_gives_direct_path(turns: bool) -> None:
    with network_namespaces.open_nat_network(shared=True) as world:

        def hairpin(client: OverlayProcess, agent: OverlayProcess) -> None:
            hosts = {"192.168.72.2": client, "192.168.71.2": agent}
            ports = {
                host: next(int(e[10:]) for e in node.latest["info"]["endpoints"] if e.startswith("10.77.0.2:"))
                for host, node in hosts.items()
            }
            if turns:
                world.turn_around("nata", "10.77.0.2", ports)

        async with nodes(world, "10.77.0.2", hairpin) as (client, agent):
            await agent.tell(serve=5000)
            await agent.wait(PATIENCE, lambda got: "serving" in got)
            if turns:
                await client.tell(send=5000, to=2, rate=2_000_000)
                await client.wait(PATIENCE, lambda got: got.get("path") == "direct")
                assert client.latest["endpoint"].startswith("10.77.0.2:")
                await client.tell(enough=True)
            else:
                await client.tell(send=5000, to=2, bytes=6_000_000, rate=2_000_000)
            await agent.wait(PATIENCE, lambda got: "finished" in got)
            await client.wait(PATIENCE, lambda got: "done" in got)
            assert turns or client.latest["direct"] == 0
            assert agent.latest["sha256"] == client.latest["sha256"]


async def test_pcp_port_crosses_symmetric_nats() -> None:
    """What only the relay could carry in the test above: the agent's router lends a port by PCP."""
    with network_namespaces.open_nat_network(hard=("nata", "natb")) as world:
        world.lend_ports("nata")
        router = ("router", "192.168.71.1", "10.77.0.2", "192.168.71.2")
        async with mesh_process(lambda command: world.argv("nata", command), *router) as lender:
            await lender.wait(PATIENCE, lambda got: "ready" in got)
            async with nodes(world) as (client, agent):
                await lender.wait(PATIENCE, lambda got: "lent" in got)
                lent = f"10.77.0.2:{lender.latest['lent']}"
                await agent.wait(PATIENCE, lambda got: got["info"]["endpoints"][0] == lent)
                await introduce(client, agent)
                await agent.tell(serve=5000)
                await agent.wait(PATIENCE, lambda got: "serving" in got)
                await client.tell(send=5000, to=2, rate=2_000_000)
                await client.wait(PATIENCE, lambda got: got.get("path") == "direct")
                assert client.latest["endpoint"] == lent
                await client.tell(enough=True)
                await agent.wait(PATIENCE, lambda got: "finished" in got)
                await client.wait(PATIENCE, lambda got: "done" in got)
                assert agent.latest["sha256"] == client.latest["sha256"]


async def test_transfer_survives_address_change() -> None:
    """Another network, as a laptop meets it: the relay connection and the direct path both began at the old address."""
    with network_namespaces.open_nat_network() as world:
        async with nodes(world) as (client, agent):
            await agent.tell(serve=5000)
            await agent.wait(PATIENCE, lambda got: "serving" in got)
            await client.tell(send=5000, to=2, rate=2_000_000)
            await client.wait(PATIENCE, lambda got: got.get("path") == "direct")
            world.move("client", "192.168.72.77")
            before = agent.latest.get("received", 0)
            await agent.wait(PATIENCE, lambda got: moved(got, "received", before, 200_000))
            new = "192.168.72.77:"
            await client.wait(PATIENCE, lambda got: any(e.startswith(new) for e in got["info"]["endpoints"]))
            await until_direct(client, PATIENCE)
            await client.tell(enough=True)
            await agent.wait(PATIENCE, lambda got: "finished" in got)
            await client.wait(PATIENCE, lambda got: "done" in got)
            assert agent.latest["sha256"] == client.latest["sha256"]


@pytest.mark.soak
async def test_one_way_loss_costs_no_byte() -> None:
    """One-way loss: everything leaves, nothing arrives; the relay carries on within five seconds."""
    with network_namespaces.open_nat_network() as world:
        async with nodes(world) as (client, agent):
            await agent.tell(serve=5000)
            await agent.wait(PATIENCE, lambda got: "serving" in got)
            await client.tell(send=5000, to=2, rate=2_000_000)
            await client.wait(PATIENCE, lambda got: got.get("path") == "direct")
            world.one_way("natb")
            await client.wait(PATIENCE, lambda got: got["path"] != "direct")
            before = agent.latest.get("received", 0)
            await agent.wait(PATIENCE, lambda got: moved(got, "received", before, 200_000))
            await client.tell(enough=True)
            await agent.wait(PATIENCE, lambda got: "finished" in got)
            await client.wait(PATIENCE, lambda got: "done" in got)
            assert agent.latest["sha256"] == client.latest["sha256"]


@pytest.mark.soak  # a longer way to what a change of address shows
async def test_transfer_survives_unplugged_cable() -> None:
    with network_namespaces.open_nat_network() as world:
        async with nodes(world) as (client, agent):
            await agent.tell(serve=5000)
            await agent.wait(PATIENCE, lambda got: "serving" in got)
            await client.tell(send=5000, to=2, rate=2_000_000)
            await client.wait(PATIENCE, lambda got: got.get("path") == "direct")
            world.unplug("client")
            await trio.sleep(4)
            world.unplug("client", plugged=True)
            before = agent.latest.get("received", 0)
            await agent.wait(PATIENCE, lambda got: moved(got, "received", before, 500_000))
            await client.tell(enough=True)
            await agent.wait(PATIENCE, lambda got: "finished" in got)
            await client.wait(PATIENCE, lambda got: "done" in got)
            assert agent.latest["sha256"] == client.latest["sha256"]
