"""What cuts plain WireGuard clients off: their traffic ends, and the audit log says so once."""

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
    """A device whose client has been added and admitted."""
    device = Phone(gateway(world).gateway)
    text = base64.b64encode(device.key.public).decode()
    made = await world.post(PATH.format("me"), {"name": name, "public_key": text, **fields}, token=token)
    assert made.status_code == 201, made.text
    device.own = IPv6Address(made.json()["client"]["address"]).packed

    async def is_admitted() -> bool:
        return gateway(world).status(device.key.public) is not None

    await eventually(is_admitted)
    async with trio.open_nursery() as nursery:
        await nursery.start(device.run)
        yield device
        nursery.cancel_scope.cancel()


async def ask(device: Phone) -> None:
    """Something the gateway answers itself: that nobody may go there."""
    await device.send(echo(ELSEWHERE, b"hello?", device.own))


async def is_answered(device: Phone) -> None:
    await ask(device)
    with trio.fail_after(60):
        assert (await device.packets.receive())[40] == icmp.UNREACHABLE


async def is_silent(device: Phone, other: Phone) -> None:
    """No answer comes: `other` asks later and has its answer."""
    await ask(device)
    await is_answered(other)
    assert device.packets.statistics().current_buffer_used == 0


async def losses(world: World) -> list[dict[str, Any]]:
    """Entries about clients that were cut off, oldest first."""
    entries = (await world.get("/api/v2/audit?limit=100&q=resource_type:api_key")).json()["audit_logs"]
    return [entry for entry in reversed(entries) if "reason" in (entry["additional_fields"] or {})]


async def told(world: World, *reasons: str) -> list[dict[str, Any]]:
    """Waits until these were told, and asserts that nothing else was."""

    async def look() -> bool:
        return len(await losses(world)) >= len(reasons)

    await eventually(look)
    found = await losses(world)
    assert [entry["additional_fields"]["reason"] for entry in found] == list(reasons)
    for entry in found:
        assert (entry["action"], entry["resource_type"], entry["status_code"]) == ("write", "api_key", 200)
        assert entry["user"] is None
    return found


async def test_an_expired_client_is_silent_and_the_log_says_so() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with workspace_world(clock=clock, wireguard_address="127.0.0.1:0") as view_context:
        world = view_context.world
        async with phone(world, "short", lifetime_seconds=3600) as short, phone(world, "other") as other:
            await is_answered(short)
            await is_answered(other)
            clock.advance(3600)
            await add(world, name="third")  # a reason to look at the clock
            await is_cut_off(world, short.key.public)
            await is_silent(short, other)
            (entry,) = await told(world, "expired")
        assert entry["resource_target"] == "short" and entry["resource_id"]
        fields = entry["additional_fields"]
        assert (fields["wireguard_client"], fields["owner"]) == ("short", "admin")
        assert datetime.fromisoformat(fields["expires_at"]) == clock.now()
        assert entry["diff"] == {"status": {"old": "active", "new": "expired", "secret": False}}


async def test_what_expires_while_it_is_looked_at_is_told_as_well() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock, wireguard_address="127.0.0.1:0") as world:
        key, _ = await add(world, lifetime_seconds=60)
        await reaches(world, key)
        look = gateway(world).look

        async def slow() -> Any:
            found = await look()
            clock.advance(60)
            return found

        gateway(world).look = slow  # type: ignore[method-assign]
        await add(world, name="other")
        await is_cut_off(world, key)
        await told(world, "expired")


async def test_the_owners_suspension_and_end_are_told_once_each() -> None:
    async with running_coderd(first_user=True, wireguard_address="127.0.0.1:0") as world:
        bob_id, bob = await world.member("bob")
        async with phone(world, "bobs", token=bob) as bobs, phone(world, "mine") as mine:
            await is_answered(bobs)
            assert (await world.put(f"/api/v2/users/{bob_id}/status/suspend")).status_code == 200
            await is_cut_off(world, bobs.key.public)
            await is_silent(bobs, mine)
            (entry,) = await told(world, "owner_suspended")
            assert entry["resource_target"] == "bobs" and entry["additional_fields"]["owner"] == "bob"
            await add(world, name="third")  # another look changes nothing
            assert (await world.put(f"/api/v2/users/{bob_id}/status/activate")).status_code == 200
            await reaches(world, bobs.key.public)
            assert (await world.delete(f"/api/v2/users/{bob_id}")).status_code in {200, 204}
            await is_cut_off(world, bobs.key.public)
            await told(world, "owner_suspended", "owner_deleted")


async def test_a_lost_workspace_is_told_and_a_stopped_one_is_not() -> None:
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
        (entry,) = await told(world, "permission_lost")
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
        await told(world, "permission_lost", "permission_lost")
        await build(view_context, "delete")
        *_, entry = await told(world, "permission_lost", "permission_lost", "workspace_deleted")
        assert entry["resource_target"] == "mine" and entry["additional_fields"]["workspace_name"] == "dev"


async def known(world: World, name: str, view_context: AgentWorld) -> None:
    """Waits until it is written down that the client reaches the workspace."""

    async def look() -> bool:
        (found,) = [one for one in await gateway(world).look() if one.client.row.name == name]
        return [str(ident) for ident in found.client.known.workspaces] == [view_context.workspace["id"]]

    await eventually(look)


async def build(view_context: AgentWorld, transition: str) -> None:
    path = f"/api/v2/workspaces/{view_context.workspace['id']}"
    answer = await view_context.world.post(f"{path}/builds", {"transition": transition})
    assert answer.status_code == 201, answer.text

    async def is_over() -> bool:
        job = (await view_context.world.get(f"/api/v2/workspacebuilds/{answer.json()['id']}")).json()["job"]
        return bool(job["status"] == "succeeded")

    await eventually(is_over)


async def test_of_many_replicas_one_tells() -> None:
    nothing: Any = None
    async with running_coderd(first_user=True) as world:
        ctx = world.ctx
        bob_id, _ = await world.member("bob")
        now = ctx.clock.now()
        row = WireguardClientRow(uuid4(), UUID(bob_id), "phone", new_key()[0], now, now + timedelta(days=1), None)
        await ctx.db.run(client_store.insert_client, row)
        replicas = [WireguardService(ctx, nothing, nothing, "") for _ in range(REPLICAS)]

        async def turn(replica: WireguardService, watched: list[wireguard_audit.Watched], results: list[bool]) -> None:
            results.append(await wireguard_audit.tell_losses(ctx, watched))

        assert (await world.put(f"/api/v2/users/{bob_id}/status/suspend")).status_code == 200
        looks = [await replica.look() for replica in replicas]
        results: list[bool] = []
        async with trio.open_nursery() as nursery:
            for replica, watched in zip(replicas, looks, strict=True):
                nursery.start_soon(turn, replica, watched, results)
        assert sorted(results) == [False] * (REPLICAS - 1) + [True]
        await told(world, "owner_suspended")
        assert await replicas[0].look() == []


async def test_two_servers_and_a_restart_tell_no_more() -> None:
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
            await told(world, "owner_suspended")
        async with open_server(config, clock=clock) as again:
            found = await gateway(World(again, world.client)).look()
            assert await wireguard_audit.tell_losses(again.context, found)
            mine, _ = await add(world, name="mine", lifetime_seconds=60)
            await reaches(world, mine)
            clock.advance(60)
            await add(world, name="other")
            await is_cut_off(world, mine)
            await told(world, "owner_suspended", "expired")
