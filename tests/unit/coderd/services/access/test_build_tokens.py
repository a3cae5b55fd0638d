"""Session tokens of builds: what their owner's administrators and template authors can do with them."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from sqlalchemy import update

from coder.base.errors import CoderError
from coder.coderd.store.tables.people import api_keys
from coder.domain.access.build_tokens import NARROWED
from coder.mesh.core.crypto.keys import PrivateKey
from tests.kit.provisioners.scripted_provisioner import connected_daemon, ended, new_template, working_daemon
from tests.kit.server.elsewhere import Elsewhere, elsewhere
from tests.kit.server.workspaces import settled


@asynccontextmanager
async def built_for_owner(**settings: Any) -> AsyncIterator[tuple[Elsewhere, dict[str, Any]]]:
    """A site owner and administrator of the default organization, added elsewhere, with a workspace created there."""
    async with elsewhere(**settings) as result:
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


async def _start(result: Elsewhere, workspace: Any, token: str | None = None) -> str:
    """Start the workspace again and return the token of the build."""
    path = f"/api/v2/workspaces/{workspace['id']}/builds"
    built = await result.world.post(path, {"transition": "start"}, token=token)
    assert built.status_code == 201, built.text
    await settled(result.world, workspace["id"])
    return result.token_of_build


async def _status(result: Elsewhere, tokens: list[str]) -> list[int]:
    return [(await result.world.get("/api/v2/users/me", token=token)).status_code for token in tokens]


async def _derived(result: Elsewhere, token: str) -> str:
    answer = await result.world.post("/api/v2/users/me/keys", token=token)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["key"])


def _device(name: str) -> dict[str, str]:
    key = PrivateKey.generate(os.urandom).public
    return {"name": name, "public_key": base64.b64encode(bytes(key)).decode()}


async def _consent(result: Elsewhere, token: str) -> httpx.Response:
    app = {"name": "app", "callback_url": "https://app.example/back"}
    created = await result.world.post("/api/v2/oauth2-provider/apps", app)
    query = {"client_id": created.json()["id"], "response_type": "code", "code_challenge": "a" * 43}
    path = f"/oauth2/authorize?{urlencode(query | {'code_challenge_method': 'S256'})}"
    return await result.world.post(path, token=token)


async def test_lasting_access_refused() -> None:
    """A token of a build, or one derived from it, creates nothing that reaches further than itself."""
    async with built_for_owner(wireguard_address="127.0.0.1:0", experiments=("oauth2",)) as (result, _):
        world, build = result.world, result.token_of_build
        push = {"endpoint": "https://push.example/x", "auth_key": "YQ", "p256dh_key": "YQ"}
        for name, token in (("build", build), ("derived", await _derived(result, build))):
            device = await world.post("/api/v2/users/me/wireguard-clients", _device(name), token=token)
            pushed = await world.post("/api/v2/users/me/webpush/subscription", push, token=token)
            for refused in (device, pushed):
                assert (refused.status_code, refused.json()["detail"]) == (403, NARROWED), refused.text
            consent = await _consent(result, token) if name == "build" else None
            if consent is not None:
                assert consent.json()["error"] == "access_denied", consent.text
            for tags in ({"scope": "user"}, {}):
                with pytest.raises(CoderError):
                    async with connected_daemon(world, token=token, tags=tags):
                        pass
        own = await world.post("/api/v2/users/me/wireguard-clients", _device("own"), token=result.tokens["chief"])
        assert own.status_code == 201, own.text


async def test_build_requested_by_token_is_narrower() -> None:
    """A build of another organization gets no administrator role there, whatever its template's setting is."""
    async with built_for_owner() as (result, _):
        world, token = result.world, result.token_of_build
        elsewhere, world.organization_id = world.organization_id, result.home
        async with working_daemon(world, result.answers):
            template = await new_template(world, "athome")
            await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
            path = f"/api/v2/templates/{template['id']}/build-tokens"
            assert (await world.put(path, {"all_roles": True})).status_code == 200
            body = {"template_id": template["id"], "name": "next"}
            for caller, expected in ((token, False), (result.tokens["chief"], True)):
                body["name"] = f"next{expected}".lower()
                created = await world.post("/api/v2/users/me/workspaces", body, token=caller)
                assert created.status_code == 201, created.text
                await settled(world, created.json()["id"])
                member = f"/api/v2/organizations/{result.home}/members/outsider/roles"
                sent = await world.put(member, {"roles": []}, token=result.token_of_build)
                assert sent.is_success is expected, sent.text
                config = await world.get("/api/v2/deployment/config", token=result.token_of_build)
                assert config.is_success is expected
        world.organization_id = elsewhere


async def test_template_restores_all_roles() -> None:
    """Only site owners turn the setting on; a template's manager turns it off, which narrows tokens at once."""
    async with built_for_owner() as (result, workspace):
        world, boss = result.world, result.tokens["boss"]
        path = f"/api/v2/templates/{result.template['id']}/build-tokens"
        assert (await world.get(path, token=boss)).json() == {"all_roles": False}
        assert (await world.get(path, token=result.tokens["outsider"])).status_code == 404
        assert (await world.put(path, {"all_roles": True}, token=boss)).status_code == 403
        assert (await world.put(path, {"all_roles": True}, token=result.tokens["insider"])).status_code == 403
        changed = await world.put(path, {"all_roles": True})
        assert (changed.status_code, changed.json()) == (200, {"all_roles": True})
        assert await world.left_an_entry(changed)
        old = result.token_of_build
        reads_config = "/api/v2/deployment/config"
        assert (await world.get(reads_config, token=old)).status_code == 403
        full = await _start(result, workspace)
        tokens = [full, await _derived(result, full)]
        assert [(await world.get(reads_config, token=token)).status_code for token in tokens] == [200, 200]
        assert (await world.put(path, {"all_roles": False}, token=boss)).status_code == 200
        assert [(await world.get(reads_config, token=token)).status_code for token in tokens] == [403, 403]
        assert await _status(result, tokens) == [200, 200]


async def test_leaving_ends_tokens() -> None:
    """With derived keys and tokens from before the upgrade; joining again does not restore them."""
    async with built_for_owner() as (result, _):
        world, boss = result.world, result.tokens["boss"]
        chief = [result.token_of_build, await _derived(result, result.token_of_build)]
        await result.create("insider")
        insider = [result.token_of_build]
        await _forget_builds(result, insider[0])
        insider.append(await _derived(result, insider[0]))
        await result.create("boss")
        own = [result.token_of_build]
        for name, tokens in (("chief", chief), ("insider", insider)):
            assert await _status(result, tokens) == [200, 200]
            member = f"/api/v2/organizations/{result.organization}/members/{name}"
            assert (await world.delete(member, token=boss)).status_code == 204
            assert await _status(result, tokens) == [401, 401], name
            assert (await world.post(member, token=boss)).status_code == 200
            assert await _status(result, tokens) == [401, 401], name
        assert await _status(result, [*own, result.tokens["chief"]]) == [200, 200]


async def _forget_builds(result: Elsewhere, token: str) -> None:
    """Make the token one from before the columns existed."""
    key = update(api_keys).where(api_keys.c.id == token.partition("-")[0])
    none = dict.fromkeys(("build_id", "build_template_id", "build_organization_id", "build_roles"))
    values = none | {"scopes": api_keys.c.scopes}

    async def write(tx: Any) -> None:
        await tx.execute(key.values(values))

    await result.world.ctx.db.run(write)


async def _counted_tokens(result: Elsewhere) -> tuple[str, list[str]]:
    """Return the severity of the database's section, and its warnings apart from a slow database."""
    report = (await result.world.get("/api/v2/debug/health?force=true")).json()["database"]
    return report["severity"], [item["message"] for item in report["warnings"] if item["code"] != "EDB02"]


async def test_older_tokens_narrow_at_next_build() -> None:
    async with built_for_owner() as (result, workspace):
        world, token = result.world, result.token_of_build
        await _forget_builds(result, token)
        tokens = [token, await _derived(result, token)]
        tokens.append(await _derived(result, tokens[1]))
        severity, counted = await _counted_tokens(result)
        assert severity == "warning" and counted[0].startswith("1 session tokens of workspace builds are from before")
        later = await _start(result, workspace)
        assert await _status(result, tokens) == [401] * 3
        assert (await world.get("/api/v2/users/me", token=later)).json()["roles"] == []
        assert (await _counted_tokens(result))[1] == []


async def test_lifetime_follows_owners_limit() -> None:
    async with built_for_owner() as (result, _):
        world = result.world
        chief = result.token_of_build
        await result.create("insider")
        ends = []
        for token in (chief, result.token_of_build, await _derived(result, chief)):
            key = (await world.get(f"/api/v2/users/me/keys/{token.partition('-')[0]}", token=token)).json()
            ends.append(datetime.fromisoformat(key["expires_at"]) - world.ctx.clock.now())
        week = timedelta(days=7)
        assert ends[0] <= week < ends[1] and ends[2] <= ends[0]
