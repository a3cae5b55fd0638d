"""Two server processes on one database: what happens at one is known, reachable and forbidden at the other."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import trio

from coder.base.secret import Secret
from coder.client.link import open_link
from coder.coderd.app import open_server
from coder.net.dial import DialPolicy
from coder.tailnet import relay_mesh
from tests.kit.agents.real_agent import exchange, running_overlay_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.api.http_clients import http_client
from tests.kit.free_ports import free_port
from tests.kit.server.server_in_process import World


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


@contextlib.asynccontextmanager
async def replica_of(world: World) -> AsyncIterator[World]:
    """Another server on the same database, and the same person there."""
    address = free_address()
    config = replace(world.ctx.config, http_address=address, derp_server_relay_url=f"http://{address}")
    async with open_server(config) as server, http_client(server.url) as client:
        yield World(server, client, world.token, world.user_id, world.organization_id)


@contextlib.asynccontextmanager
async def two_replicas() -> AsyncIterator[tuple[AgentWorld, World]]:
    """A workspace at the first of two servers."""
    address = free_address()
    settings: dict[str, Any] = {"http_address": address, "derp_server_relay_url": f"http://{address}"}
    async with workspace_world(**settings) as view_context, replica_of(view_context.world) as other:
        yield view_context, other


async def test_a_client_of_one_replica_reaches_an_agent_of_the_other() -> None:
    async with two_replicas() as (view_context, other), running_overlay_agent(view_context):
        with trio.fail_after(60):
            assert other.ctx.agent_dialer is not None
            await exchange(await other.ctx.agent_dialer.dial(view_context.agent_id, 7))
            policy = DialPolicy(other.url, token=Secret(other.token))
            async with open_link(policy, view_context.agent_id, direct=False) as link:
                await link.wait_reachable()
                await exchange(await link.connect(7))


async def test_a_client_that_waits_is_told_when_the_agent_comes_to_the_other_replica() -> None:
    async with two_replicas() as (view_context, other):
        policy = DialPolicy(other.url, token=Secret(other.token))
        async with open_link(policy, view_context.agent_id, direct=False) as link, running_overlay_agent(view_context):
            with trio.fail_after(60):
                await link.wait_reachable()
                await exchange(await link.connect(7))


async def test_an_agent_comes_back_at_the_replica_that_is_left() -> None:
    async with contextlib.AsyncExitStack() as first:
        address = free_address()
        view_context = await first.enter_async_context(
            workspace_world(http_address=address, derp_server_relay_url=f"http://{address}")
        )
        async with replica_of(view_context.world) as other:
            policy = DialPolicy(other.url, token=Secret(other.token))
            async with open_link(policy, view_context.agent_id, direct=False) as link:
                with trio.fail_after(60):
                    async with running_overlay_agent(view_context):
                        await link.wait_reachable()
                        await exchange(await link.connect(7))
                    async with running_overlay_agent(replace(view_context, world=other)):
                        await link.wait_reachable()
                        await exchange(await link.connect(7))


async def test_each_replica_knows_of_all_and_of_goodbyes() -> None:
    async with workspace_world() as view_context:
        async with replica_of(view_context.world) as other:
            for world in (view_context.world, other):
                listed = (await world.get("/api/v2/replicas")).json()
                assert len(listed) == 2
                assert [one["relay_address"] for one in listed] == ["", other.ctx.config.derp_server_relay_url]
        assert len((await view_context.world.get("/api/v2/replicas")).json()) == 1


async def test_watchers_and_jobs_and_sessions_cross() -> None:
    async with workspace_world() as view_context, replica_of(view_context.world) as other:
        workspace = f"/api/v2/workspaces/{view_context.workspace['id']}"
        # the daemon is connected to the first
        made = await other.post(f"{workspace}/builds", {"transition": "stop"})
        assert made.status_code == 201, made.text

        async def stopped() -> bool:
            found = (await other.get(f"/api/v2/workspacebuilds/{made.json()['id']}")).json()
            return bool(found["job"]["status"] == "succeeded")

        await eventually(stopped)
        shown = {"Coder-Session-Token": other.token}
        async with other.client.stream("GET", f"{workspace}/watch", headers=shown) as events:
            with trio.fail_after(60):
                told = cut = False
                async for line in events.aiter_lines():
                    if line.startswith("data: {") and not told:
                        told = True
                        await view_context.world.put(f"{workspace}/ttl", {"ttl_ms": 3_660_000})
                    elif '"ttl_ms":3660000' in line and not cut:
                        cut = True  # what is read from here on ends because the other replica cuts it
                        await view_context.world.post("/api/v2/users/logout")
        assert cut
        assert (await other.get("/api/v2/users/me")).status_code == 401


async def test_a_right_taken_away_at_one_replica_is_gone_at_the_other() -> None:
    async with workspace_world() as view_context, replica_of(view_context.world) as other:
        user_id, token = await view_context.world.member("helper", ["user-admin"])
        listing = "/api/v2/users?limit=1"
        assert (await other.get(listing, token=token)).json()["count"] > 1
        await view_context.world.put(f"/api/v2/users/{user_id}/roles", {"roles": []})
        assert (await view_context.world.get(listing, token=token)).json()["count"] == 1  # here at once

        async def gone() -> bool:
            return bool((await other.get(listing, token=token)).json()["count"] == 1)

        await eventually(gone)
        assert UUID(user_id).int


@pytest.mark.parametrize("address", ["http://a:b", "http://[::1", "nonsense"])
async def test_an_address_that_is_none_ends_no_other_replica(address: str, autojump_clock: Any) -> None:
    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        server: Any = None
        nursery.start_soon(relay_mesh._keep_linked, server, address, "key", scope)
        await trio.sleep(60)
        scope.cancel()
