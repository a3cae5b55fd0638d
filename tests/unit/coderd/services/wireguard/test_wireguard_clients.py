"""Plain WireGuard clients through the API, and their reach through the gateway as permissions change."""

from __future__ import annotations

import base64
import os
from datetime import datetime, timedelta
from ipaddress import IPv6Address
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from coder.api.field_rules.own_sentences import MAX_NAMED_WORKSPACES
from coder.base.errors import CoderError
from coder.coderd.services.wireguard import new_wireguard_clients
from coder.coderd.services.wireguard.wireguard_service import WireguardService, gateway_of
from coder.domain.network.overlay import agent_address, workspace_address
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.drivers.wireguard_gateway import GatewayClient
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.server.server_in_process import World, running_coderd

PATH = "/api/v2/users/{}/wireguard-clients"


def gateway(world: World) -> WireguardService:
    service = gateway_of(world.ctx)
    assert service is not None
    return service


def admitted(world: World, key: bytes) -> GatewayClient | None:
    """Return the client's entry in the gateway's table."""
    client = gateway(world).gateway._clients.get(key)
    return client.config if client else None


async def reaches(world: World, key: bytes, *addresses: IPv6Address) -> None:
    """Wait until the gateway lets the client reach exactly these stable addresses."""

    async def has_reach() -> bool:
        client = admitted(world, key)
        return client is not None and set(client.stable) == {address.packed for address in addresses}

    await eventually(has_reach)


async def is_cut_off(world: World, key: bytes) -> None:
    async def is_absent() -> bool:
        return admitted(world, key) is None

    await eventually(is_absent)


def new_key() -> tuple[bytes, str]:
    key = PrivateKey.generate(os.urandom).public
    return bytes(key), base64.b64encode(key).decode()


async def add(world: World, user: str = "me", *, token: str | None = None, **fields: Any) -> tuple[bytes, Any]:
    key, text = new_key()
    answer = await world.post(PATH.format(user), {"name": "phone", "public_key": text, **fields}, token=token)
    assert answer.status_code == 201, answer.text
    return key, answer.json()


def stable(view_context: AgentWorld) -> IPv6Address:
    return workspace_address(UUID(view_context.workspace["id"]), "main")


async def test_client_lifecycle() -> None:
    async with workspace_world(
        wireguard_address="127.0.0.1:0",
        wireguard_endpoint="vpn.example.com:51820",
        max_admin_token_lifetime=new_wireguard_clients.UNLIMITED,
    ) as view_context:
        world = view_context.world
        key, answer = await add(world)
        client, server = answer["client"], answer["server"]
        assert server["enabled"] and server["endpoint"] == "vpn.example.com:51820" and server["mtu"] == 1280
        assert base64.b64decode(server["public_key"]) == gateway(world).gateway.public_key
        assert client["expires_at"] is None and client["workspace_ids"] is None and client["status"] == "active"
        assert [target["address"] for target in client["targets"]] == [str(stable(view_context))]
        await reaches(world, key, stable(view_context))
        config = admitted(world, key)
        assert config is not None and config.address == IPv6Address(client["address"]).packed
        assert agent_address(view_context.agent_id).packed in config.peers
        other, _ = await add(world, name="limited", workspace_ids=[view_context.workspace["id"]], lifetime_seconds=3600)
        unlimited, _ = await add(world, name="nothing", workspace_ids=[])
        await reaches(world, other, stable(view_context))
        await reaches(world, unlimited)
        listed = (await world.get(PATH.format("me"))).json()
        assert [item["name"] for item in listed] == ["limited", "nothing", "phone"]
        # expiry needs no notice: the table is applied for a moment
        now = world.ctx.clock.now()
        gateway(world).apply(now + timedelta(hours=2))
        assert admitted(world, other) is None and admitted(world, key) is not None
        assert gateway(world).apply(now) == gateway(world)._entries[1].row.expires_at
        assert (await world.delete(PATH.format("me") + "/phone")).status_code == 204
        await is_cut_off(world, key)
        assert (await world.get(PATH.format("me") + "/phone")).status_code == 404
        entries = (await world.get("/api/v2/audit?limit=50")).json()["audit_logs"]
        found = [entry for entry in entries if "wireguard_client" in (entry["additional_fields"] or {})]
        assert [(entry["action"], entry["resource_target"]) for entry in found] == [
            ("delete", "phone"),
            ("create", "nothing"),
            ("create", "limited"),
            ("create", "phone"),
        ]
        assert found[-1]["diff"]["public_key"]["new"] == client["public_key"]
        assert (await world.get(PATH.format("me") + "/limited")).json()["name"] == "limited"


async def test_concurrent_creations_respect_client_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_wireguard_clients, "MAX_CLIENTS", 3)
    async with running_coderd(first_user=True, wireguard_address="127.0.0.1:0") as world:
        _, other = await world.member("other")
        statuses: list[int] = []

        async def ask(number: int) -> None:
            body = {"name": f"phone{number}", "public_key": new_key()[1]}
            statuses.append((await world.post(PATH.format("me"), body)).status_code)

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(ask, number)
        assert sorted(statuses) == [201] * 3 + [409] * 5
        await add(world, token=other)  # the limit is of each user
        clients = (await world.get(PATH.format("me"))).json()
        assert (await world.delete(f"{PATH.format('me')}/{clients[0]['name']}")).status_code == 204
        await add(world, name="again")


async def test_too_many_workspaces_rejected() -> None:
    async with running_coderd(first_user=True, wireguard_address="127.0.0.1:0") as world:
        ids = [str(uuid4()) for _ in range(MAX_NAMED_WORKSPACES + 1)]
        body = {"name": "phone", "public_key": new_key()[1], "workspace_ids": ids}
        refused = await world.post(PATH.format("me"), body)
        assert (refused.status_code, refused.json()["validations"][0]["field"]) == (400, "workspace_ids")


async def test_lost_permission_disconnects() -> None:
    async with workspace_world(wireguard_address="127.0.0.1:0") as view_context:
        world = view_context.world
        bob_id, bob = await world.member("bob")
        key, answer = await add(world, token=bob)
        assert answer["client"]["targets"] == []
        await reaches(world, key)
        acl = f"/api/v2/workspaces/{view_context.workspace['id']}/acl"
        assert (await world.patch(acl, {"user_roles": {bob_id: "use"}})).status_code == 204
        await reaches(world, key, stable(view_context))
        assert (await world.patch(acl, {"user_roles": {bob_id: ""}})).status_code == 204
        await reaches(world, key)
        assert (await world.put(f"/api/v2/users/{bob_id}/status/suspend")).status_code == 200
        await is_cut_off(world, key)
        assert (await world.put(f"/api/v2/users/{bob_id}/status/activate")).status_code == 200
        await reaches(world, key)
        mine, _ = await add(world)
        await reaches(world, mine, stable(view_context))
        builds = f"/api/v2/workspaces/{view_context.workspace['id']}/builds"
        assert (await world.post(builds, {"transition": "delete"})).status_code == 201
        await reaches(world, mine)


async def test_invalid_requests_rejected() -> None:
    async with running_coderd(first_user=True, wireguard_address="127.0.0.1:0") as world:
        _, text = new_key()
        _, bob = await world.member("bob")
        path = PATH.format("me")

        async def status(body: dict[str, Any], where: str = path, token: str | None = None) -> int:
            return (await world.post(where, {"name": "phone", "public_key": text, **body}, token=token)).status_code

        refused = await world.post(path, {"name": "no spaces!", "public_key": "AAAA", "lifetime_seconds": -1})
        assert refused.status_code == 400
        fields = {item["field"] for item in refused.json()["validations"]}
        assert fields == {"name", "public_key", "lifetime_seconds"}
        assert await status({"workspace_ids": [str(uuid4())]}) == 404
        assert await status({}) == 201
        assert await status({"name": "PHONE", "public_key": new_key()[1]}) == 409
        assert await status({"name": "same-key"}) == 409
        assert await status({}, PATH.format("admin"), bob) in {403, 404}
        for answer in (
            await world.get(PATH.format("admin"), token=bob),
            await world.get(PATH.format("admin") + "/phone", token=bob),
            await world.delete(PATH.format("admin") + "/phone", token=bob),
        ):
            assert answer.status_code == 404
        assert (await world.get(path, token="")).status_code == 401
        assert [item["name"] for item in (await world.get(PATH.format("admin"))).json()] == ["phone"]


async def test_limited_key_bounds_client() -> None:
    day = timedelta(days=1)
    async with workspace_world(wireguard_address="127.0.0.1:0", max_token_lifetime=day) as view_context:
        world, path = view_context.world, PATH.format("me")

        async def limited(*names: str) -> str:
            answer = await world.post("/api/v2/users/me/keys/tokens", {"scopes": list(names), "lifetime": 3600 * 10**9})
            assert answer.status_code == 201, answer.text
            return str(answer.json()["key"])

        async def status(token: str | None, **fields: Any) -> int:
            body = {"name": f"c{uuid4().hex[:8]}", "public_key": new_key()[1], **fields}
            return (await world.post(path, body, token=token)).status_code

        mine = [view_context.workspace["id"]]
        keys_only = await limited("api_key:create", "user:read", "workspace:read")
        assert await status(keys_only) == 403
        assert await status(keys_only, workspace_ids=mine) == 403
        entering = await limited("api_key:create", "user:read", "workspace:read", "workspace:ssh")
        assert await status(entering) == 403
        assert await status(entering, workspace_ids=mine) == 201
        assert await status(None, lifetime_seconds=int(day.total_seconds()) + 1) == 400
        _, answer = await add(world)
        assert answer["client"]["expires_at"] is not None


async def test_no_gateway_without_address() -> None:
    async with running_coderd(first_user=True) as world:
        assert (await world.get("/api/v2/wireguard")).json()["enabled"] is False
        answer = await world.post(PATH.format("me"), {"name": "phone", "public_key": new_key()[1]})
        assert answer.status_code == 400 and "--wireguard-address" in answer.json()["detail"]
        assert (await world.get(PATH.format("me"))).json() == []


async def test_unusable_endpoint_prevents_start() -> None:
    with pytest.raises(CoderError, match="it has no port"):
        async with running_coderd(wireguard_address="127.0.0.1:0", wireguard_endpoint="vpn.example.com"):
            pass


async def test_lifetime_follows_owners_limit() -> None:
    """A device is as strong as a token, so the shorter limit of site owners applies to theirs."""
    async with workspace_world(wireguard_address="127.0.0.1:0", max_admin_token_lifetime=timedelta(days=2)) as machine:
        world = machine.world
        member, token = await world.member("alice")
        _, answer = await add(world)
        expires = datetime.fromisoformat(answer["client"]["expires_at"]) - world.ctx.clock.now()
        assert expires <= timedelta(days=2)
        month = {"lifetime_seconds": 30 * 86400}
        for user, name, sent, status in (("me", "a", world.token, 400), (member, "b", token, 201)):
            body = {"name": name, "public_key": new_key()[1], **month}
            assert (await world.post(PATH.format(user), body, token=sent)).status_code == status, name
        _, unlimited = await add(world, "me", token=token, name="c")
        assert not unlimited["client"].get("expires_at")
