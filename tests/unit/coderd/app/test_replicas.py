"""Two server processes on one database: events at one are known, reachable and forbidden at the other."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from coder.base.clock import Clock, FakeClock
from coder.base.secret import Secret
from coder.client.link import open_link
from coder.coderd.app import open_server
from coder.coderd.services.network import replicas as replicas_service
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
async def replica_of(world: World, clock: Clock | None = None) -> AsyncIterator[World]:
    """Yield another server on the same database, with the same user."""
    address = free_address()
    config = replace(world.ctx.config, http_address=address, derp_server_relay_url=f"http://{address}")
    async with open_server(config, clock=clock) as server, http_client(server.url) as client:
        yield World(server, client, world.token, world.user_id, world.organization_id)


@contextlib.asynccontextmanager
async def two_replicas() -> AsyncIterator[tuple[AgentWorld, World]]:
    """Yield a workspace at the first of two servers."""
    address = free_address()
    settings: dict[str, Any] = {"http_address": address, "derp_server_relay_url": f"http://{address}"}
    async with workspace_world(**settings) as view_context, replica_of(view_context.world) as other:
        yield view_context, other


async def test_client_reaches_agent_across_replicas() -> None:
    async with two_replicas() as (view_context, other), running_overlay_agent(view_context):
        with trio.fail_after(60):
            assert other.ctx.agent_dialer is not None
            await exchange(await other.ctx.agent_dialer.dial(view_context.agent_id, 7))
            policy = DialPolicy(other.url, token=Secret(other.token))
            async with open_link(policy, view_context.agent_id, direct=False) as link:
                await link.wait_reachable()
                await exchange(await link.connect(7))


async def test_waiting_client_learns_of_remote_agent() -> None:
    async with two_replicas() as (view_context, other):
        policy = DialPolicy(other.url, token=Secret(other.token))
        async with open_link(policy, view_context.agent_id, direct=False) as link, running_overlay_agent(view_context):
            with trio.fail_after(60):
                await link.wait_reachable()
                await exchange(await link.connect(7))


async def test_agent_reconnects_to_remaining_replica() -> None:
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


async def test_replicas_know_each_other() -> None:
    async with workspace_world() as view_context:
        async with replica_of(view_context.world) as other:
            for world in (view_context.world, other):
                listed = (await world.get("/api/v2/replicas")).json()
                assert len(listed) == 2
                assert [item["relay_address"] for item in listed] == ["", other.ctx.config.derp_server_relay_url]
        assert len((await view_context.world.get("/api/v2/replicas")).json()) == 1


async def test_outage_loses_no_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first to renew its row afterwards finds the rows of the others old."""

    async def renew_by_hand(*_: Any) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(replicas_service, "_keep_renewing", renew_by_hand)
    clock = FakeClock(datetime.now(UTC))
    async with workspace_world(clock=clock) as view_context, replica_of(view_context.world, clock):
        ctx = view_context.world.ctx
        replicas = ctx.services.relay.replicas
        await replicas.renew(ctx.nursery)
        for seconds, living in ((0, 2), (120, 2), (10, 1)):
            clock.advance(seconds)
            await replicas.renew(ctx.nursery)
            assert len(replicas.rows) == living, f"after {seconds} s"


async def test_watchers_jobs_and_sessions_cross() -> None:
    async with workspace_world() as view_context, replica_of(view_context.world) as other:
        workspace = f"/api/v2/workspaces/{view_context.workspace['id']}"
        # the daemon is connected to the first
        created = await other.post(f"{workspace}/builds", {"transition": "stop"})
        assert created.status_code == 201, created.text

        async def is_stopped() -> bool:
            result = (await other.get(f"/api/v2/workspacebuilds/{created.json()['id']}")).json()
            return bool(result["job"]["status"] == "succeeded")

        await eventually(is_stopped)
        headers = {"Coder-Session-Token": other.token}
        async with other.client.stream("GET", f"{workspace}/watch", headers=headers) as events:
            with trio.fail_after(60):
                notified = cut = False
                async for line in events.aiter_lines():
                    if line.startswith("data: {") and not notified:
                        notified = True
                        await view_context.world.put(f"{workspace}/ttl", {"ttl_ms": 3_660_000})
                    elif '"ttl_ms":3660000' in line and not cut:
                        cut = True  # reads from here on end because the other replica cuts the connection
                        await view_context.world.post("/api/v2/users/logout")
        assert cut
        assert (await other.get("/api/v2/users/me")).status_code == 401


async def test_revocation_reaches_other_replica() -> None:
    async with workspace_world() as view_context, replica_of(view_context.world) as other:
        user_id, token = await view_context.world.member("helper", ["user-admin"])
        listing = "/api/v2/users?limit=1"
        assert (await other.get(listing, token=token)).json()["count"] > 1
        await view_context.world.put(f"/api/v2/users/{user_id}/roles", {"roles": []})
        assert (await view_context.world.get(listing, token=token)).json()["count"] == 1  # here at once

        async def is_revoked() -> bool:
            return bool((await other.get(listing, token=token)).json()["count"] == 1)

        await eventually(is_revoked)
        assert UUID(user_id).int


@pytest.mark.parametrize("address", ["http://a:b", "http://[::1", "nonsense"])
async def test_invalid_address_keeps_other_replicas(address: str, autojump_clock: Any) -> None:
    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        server: Any = None
        nursery.start_soon(relay_mesh._keep_linked, server, uuid4(), address, "key", scope)
        await trio.sleep(60)
        scope.cancel()
