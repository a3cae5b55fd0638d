"""Session tokens of builds: what their owner's administrators and template authors can do with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from coder.domain.access.build_tokens import NARROWED
from tests.kit.server.elsewhere import Elsewhere, elsewhere
from tests.kit.server.workspaces import settled


@asynccontextmanager
async def built_for_owner() -> AsyncIterator[tuple[Elsewhere, dict[str, Any]]]:
    """A site owner and administrator of the default organization, added elsewhere, with a workspace created there."""
    async with elsewhere() as result:
        world = result.world
        await result.add("chief", result.home)
        assert (await world.put("/api/v2/users/chief/roles", {"roles": ["owner"]})).status_code == 200
        path = f"/api/v2/organizations/{result.home}/members/chief/roles"
        assert (await world.put(path, {"roles": ["organization-admin"]})).status_code == 200
        boss = result.tokens["boss"]
        added = await world.post(f"/api/v2/organizations/{result.organization}/members/chief", token=boss)
        assert added.status_code == 200, added.text
        body = {"template_id": result.template["id"], "name": "trap"}
        created = await world.post("/api/v2/users/chief/workspaces", body, token=boss)
        assert created.status_code == 201, created.text
        yield result, await settled(world, created.json()["id"])


async def test_added_owner_keeps_site() -> None:
    """The administrator who added the owner reads the token, and gets member rights by it, directly or derived."""
    async with built_for_owner() as (result, _):
        world, token = result.world, result.token_of_build
        derived = await world.post("/api/v2/users/me/keys", token=token)
        named = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "mine"}, token=token)
        again = await world.post("/api/v2/users/me/keys", token=derived.json()["key"])
        tokens = {
            "build": token,
            **{
                name: answer.json()["key"]
                for name, answer in (("session", derived), ("named", named), ("second", again))
            },
        }
        for name, each in tokens.items():
            me = (await world.get("/api/v2/users/me", token=each)).json()
            assert (me["username"], me["roles"]) == ("chief", []), name
            assert (await world.get("/api/v2/users/chief", token=each)).json()["roles"] == []
            roles = (await world.get("/api/v2/users/me/roles", token=each)).json()
            assert roles["roles"] == [] and "organization-admin" not in roles["organization_roles"][result.home]
            checks = {
                "site": {"object": {"resource_type": "user"}, "action": "create"},
                "home": {"object": {"resource_type": "template", "organization_id": result.home}, "action": "create"},
                "own": {
                    "object": {"resource_type": "workspace", "owner_id": me["id"], "organization_id": result.home},
                    "action": "read",
                },
            }
            answers = (await world.post("/api/v2/authcheck", {"checks": checks}, token=each)).json()
            assert answers == {"home": False, "own": True, "site": False}, name
            for method, path, sent in (
                ("PUT", "/api/v2/users/boss/roles", {"roles": ["owner"]}),
                ("GET", "/api/v2/deployment/config", None),
                ("DELETE", f"/api/v2/organizations/{result.home}/members/outsider", None),
                ("GET", "/api/v2/users/outsider", None),
            ):
                refused = await world.request(method, path, json=sent, token=each)
                assert refused.status_code in {400, 403, 404}, (name, method, path)
                if refused.status_code != 400:
                    assert NARROWED in refused.json()["detail"], (name, path, refused.text)
        assert (await world.get("/api/v2/users/outsider", token=result.tokens["chief"])).status_code == 200


async def test_keys_end_with_build() -> None:
    """Keys created with a build's token, however indirectly, end when the next build replaces the token."""
    async with built_for_owner() as (result, workspace):
        world, token = result.world, result.token_of_build
        keys = [token]
        for _ in range(2):
            keys.append((await world.post("/api/v2/users/me/keys", token=keys[-1])).json()["key"])
        assert [(await world.get("/api/v2/users/me", token=key)).status_code for key in keys] == [200] * 3
        built = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": "start"})
        assert built.status_code == 201, built.text
        await settled(world, workspace["id"])
        assert [(await world.get("/api/v2/users/me", token=key)).status_code for key in keys] == [401] * 3
        assert (await world.get("/api/v2/users/me", token=result.token_of_build)).status_code == 200
