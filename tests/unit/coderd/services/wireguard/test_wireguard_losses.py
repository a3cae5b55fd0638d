"""Causes that disconnect plain WireGuard clients: traffic ends, and the audit log has one entry."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Address
from typing import Any
from uuid import UUID, uuid4

import trio

from coder.base.clock import FakeClock
from coder.coderd.app import open_server
from coder.coderd.services.wireguard import wireguard_audit
from coder.coderd.services.wireguard.wireguard_service import WireguardService
from coder.coderd.store.wireguard import wireguard_clients as client_store
from coder.coderd.store.wireguard.wireguard_clients import WireguardClientRow
from coder.mesh.core.wire import icmp
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.network.wireguard_devices import ELSEWHERE, Phone, echo
from tests.kit.server.server_in_process import World, running_coderd
from tests.unit.coderd.services.wireguard.test_wireguard_clients import (
    PATH,
    add,
    gateway,
    is_cut_off,
    new_key,
    reaches,
    stable,
)

REPLICAS = 4


@asynccontextmanager
async def phone(world: World, name: str, *, token: str | None = None, **fields: Any) -> AsyncIterator[Phone]:
    """Run a device whose client is added and admitted."""
    device = Phone(gateway(world).gateway)
    text = base64.b64encode(device.key.public).decode()
    answer = await world.post(PATH.format("me"), {"name": name, "public_key": text, **fields}, token=token)
    assert answer.status_code == 201, answer.text
    device.own = IPv6Address(answer.json()["client"]["address"]).packed

    async def is_admitted() -> bool:
        return gateway(world).status(device.key.public) is not None

    await eventually(is_admitted)
    async with trio.open_nursery() as nursery:
        await nursery.start(device.run)
        yield device
        nursery.cancel_scope.cancel()


async def ask(device: Phone) -> None:
    """Send a packet that the gateway itself answers with Destination Unreachable."""
    await device.send(echo(ELSEWHERE, b"hello?", device.own))


async def is_answered(device: Phone) -> None:
    await ask(device)
    with trio.fail_after(60):
        assert (await device.packets.receive())[40] == icmp.UNREACHABLE


async def is_silent(device: Phone, other: Phone) -> None:
    """Assert that no answer comes: `other` asks later and has its answer."""
    await ask(device)
    await is_answered(other)
    assert device.packets.statistics().current_buffer_used == 0


async def losses(world: World) -> list[dict[str, Any]]:
    """Return entries about disconnected clients, oldest first."""
    entries = (await world.get("/api/v2/audit?limit=100&q=resource_type:api_key")).json()["audit_logs"]
    return [entry for entry in reversed(entries) if "reason" in (entry["additional_fields"] or {})]


async def expect_losses(world: World, *reasons: str) -> list[dict[str, Any]]:
    """Wait for entries with these reasons, and assert that there are no others."""

    async def are_written() -> bool:
        return len(await losses(world)) >= len(reasons)

    await eventually(are_written)
    entries = await losses(world)
    assert [entry["additional_fields"]["reason"] for entry in entries] == list(reasons)
    for entry in entries:
        assert (entry["action"], entry["resource_type"], entry["status_code"]) == ("write", "api_key", 200)
        assert entry["user"] is None
    return entries


async def test_expiry_disconnects_and_is_audited() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with workspace_world(clock=clock, wireguard_address="127.0.0.1:0") as view_context:
        world = view_context.world
        async with phone(world, "short", lifetime_seconds=3600) as short, phone(world, "other") as other:
            await is_answered(short)
            await is_answered(other)
            clock.advance(3600)
            await add(world, name="third")  # makes the gateway read the clock
            await is_cut_off(world, short.key.public)
            await is_silent(short, other)
            (entry,) = await expect_losses(world, "expired")
        assert entry["resource_target"] == "short" and entry["resource_id"]
        fields = entry["additional_fields"]
        assert (fields["wireguard_client"], fields["owner"]) == ("short", "admin")
        assert datetime.fromisoformat(fields["expires_at"]) == clock.now()
        assert entry["diff"] == {"status": {"old": "active", "new": "expired", "secret": False}}


async def test_expiry_during_load_is_audited() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock, wireguard_address="127.0.0.1:0") as world:
        key, _ = await add(world, lifetime_seconds=60)
        await reaches(world, key)
        read_reach = gateway(world).read_reach

        async def read_slowly() -> Any:
            watched = await read_reach()
            clock.advance(60)
            return watched

        gateway(world).read_reach = read_slowly  # type: ignore[method-assign]
        await add(world, name="other")
        await is_cut_off(world, key)
        await expect_losses(world, "expired")


async def test_owner_suspension_and_deletion_audited_once() -> None:
    async with running_coderd(first_user=True, wireguard_address="127.0.0.1:0") as world:
        bob_id, bob = await world.member("bob")
        async with phone(world, "bobs", token=bob) as bobs, phone(world, "mine") as mine:
            await is_answered(bobs)
            assert (await world.put(f"/api/v2/users/{bob_id}/status/suspend")).status_code == 200
            await is_cut_off(world, bobs.key.public)
            await is_silent(bobs, mine)
            (entry,) = await expect_losses(world, "owner_suspended")
            assert entry["resource_target"] == "bobs" and entry["additional_fields"]["owner"] == "bob"
            await add(world, name="third")  # another load changes nothing
            assert (await world.put(f"/api/v2/users/{bob_id}/status/activate")).status_code == 200
            await reaches(world, bobs.key.public)
            assert (await world.delete(f"/api/v2/users/{bob_id}")).status_code in {200, 204}
            await is_cut_off(world, bobs.key.public)
            await expect_losses(world, "owner_suspended", "owner_deleted")


async def test_lost_workspace_audited_stopped_not() -> None:
    async with workspace_world(wireguard_address="127.0.0.1:0") as view_context:
        world = view_context.world
        bob_id, bob = await world.member("bob")
        acl = f"/api/v2/workspaces/{view_context.workspace['id']}/acl"

        async def share(role: str) -> None:
            assert (await world.patch(acl, {"user_roles": {bob_id: role}})).status_code == 204

        key, _ = await add(world, token=bob)
        await share("use")
        await reaches(world, key, stable(view_context))
        await known(world, "phone", view_context)
        await share("")
        await reaches(world, key)
        (entry,) = await expect_losses(world, "permission_lost")
        fields = entry["additional_fields"]
        assert fields["workspace_id"] == view_context.workspace["id"] and fields["agents"] == ["main"]
        assert (fields["workspace_name"], fields["workspace_owner"], fields["owner"]) == ("dev", "admin", "bob")
        assert entry["diff"]["workspaces"] == {"old": [view_context.workspace["id"]], "new": [], "secret": False}
        await share("use")
        await reaches(world, key, stable(view_context))
        await known(world, "phone", view_context)
        mine, _ = await add(world, name="mine")
        await reaches(world, mine, stable(view_context))
        await known(world, "mine", view_context)
        await build(view_context, "stop")
        await reaches(world, mine)
        await share("")
        await expect_losses(world, "permission_lost", "permission_lost")
        await build(view_context, "delete")
        *_, entry = await expect_losses(world, "permission_lost", "permission_lost", "workspace_deleted")
        assert entry["resource_target"] == "mine" and entry["additional_fields"]["workspace_name"] == "dev"


async def known(world: World, name: str, view_context: AgentWorld) -> None:
    """Wait until the database knows that the client reaches the workspace."""

    async def is_stored() -> bool:
        (watched,) = [item for item in await gateway(world).read_reach() if item.client.row.name == name]
        return [str(ident) for ident in watched.client.known.workspaces] == [view_context.workspace["id"]]

    await eventually(is_stored)


async def build(view_context: AgentWorld, transition: str) -> None:
    path = f"/api/v2/workspaces/{view_context.workspace['id']}"
    answer = await view_context.world.post(f"{path}/builds", {"transition": transition})
    assert answer.status_code == 201, answer.text

    async def is_over() -> bool:
        job = (await view_context.world.get(f"/api/v2/workspacebuilds/{answer.json()['id']}")).json()["job"]
        return bool(job["status"] == "succeeded")

    await eventually(is_over)


async def test_one_replica_writes_entry() -> None:
    unused: Any = None
    async with running_coderd(first_user=True) as world:
        ctx = world.ctx
        bob_id, _ = await world.member("bob")
        now = ctx.clock.now()
        row = WireguardClientRow(uuid4(), UUID(bob_id), "phone", new_key()[0], now, now + timedelta(days=1), None)
        await ctx.db.run(client_store.insert_client, row)
        replicas = [WireguardService(ctx, unused, unused, "") for _ in range(REPLICAS)]

        async def write(watched: list[wireguard_audit.Watched], results: list[bool]) -> None:
            results.append(await wireguard_audit.write_losses(ctx, watched))

        assert (await world.put(f"/api/v2/users/{bob_id}/status/suspend")).status_code == 200
        readings = [await replica.read_reach() for replica in replicas]
        results: list[bool] = []
        async with trio.open_nursery() as nursery:
            for watched in readings:
                nursery.start_soon(write, watched, results)
        assert sorted(results) == [False] * (REPLICAS - 1) + [True]
        await expect_losses(world, "owner_suspended")
        assert await replicas[0].read_reach() == []


async def test_replicas_and_restart_add_no_entries() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock, wireguard_address="127.0.0.1:0") as world:
        bob_id, bob = await world.member("bob")
        config = replace(world.ctx.config, wireguard_address="127.0.0.1:0", http_address="127.0.0.1:0")
        async with open_server(config, clock=clock) as second:
            key, _ = await add(world, token=bob)
            other = World(second, world.client)
            await reaches(world, key)
            await reaches(other, key)
            assert (await world.put(f"/api/v2/users/{bob_id}/status/suspend")).status_code == 200
            await is_cut_off(world, key)
            await is_cut_off(other, key)
            await expect_losses(world, "owner_suspended")
        async with open_server(config, clock=clock) as again:
            watched = await gateway(World(again, world.client)).read_reach()
            assert await wireguard_audit.write_losses(again.context, watched)
            mine, _ = await add(world, name="mine", lifetime_seconds=60)
            await reaches(world, mine)
            clock.advance(60)
            await add(world, name="other")
            await is_cut_off(world, mine)
            await expect_losses(world, "owner_suspended", "expired")
