"""External logins required by a template: without one, no kind of start is possible."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.cli.workspaces import external_logins
from coder.rpc.proto import agent_pb2
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.session import open_session
from tests.kit.agents.scripted_agent import dial_link
from tests.kit.programs.command_line import run_cli
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, new_template, resource
from tests.kit.recordings.exchange_replay import server_settings
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import TOKEN, build, build_answer, create, new_workspace, workspace_world
from tests.kit.stand_ins.oidc_provider import IdentityProvider, identity_provider
from tests.unit.coderd.services.login.test_external_auth import link

NEEDED = [pb.ExternalAuthProviderResource(id="fake"), pb.ExternalAuthProviderResource(id="dev", optional=True)]


@asynccontextmanager
async def deployment() -> AsyncIterator[tuple[World, IdentityProvider]]:
    def imported(_job: Any) -> dict[str, Any]:
        return {"start_resources": [resource("box", agents=[agent()])], "external_auth_providers": NEEDED}

    with identity_provider() as idp:
        config = server_settings("external_auth", idp.url)
        async with workspace_world(Answers(import_=imported, build=build_answer), **config) as (world, _answers):
            yield world, idp


def refused(answer: Any) -> None:
    assert answer.status_code == 403, answer.text
    assert "external login" in answer.json()["message"] and "Fake Git" in answer.json()["detail"]
    assert "custom" not in answer.json()["detail"], "an optional login is not required"


async def test_missing_login_blocks_start() -> None:
    async with deployment() as (world, idp):
        refused(await create(world, "early"))
        assert (await world.get("/api/v2/workspaces")).json()["count"] == 0
        await link(world)
        workspace = await new_workspace(world, "w")
        idp.valid = False  # revoked at the provider
        assert (await build(world, workspace["id"], "stop"))["latest_build"]["status"] == "stopped"
        refused(await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": "start"}))
        idp.valid = True
        assert (await build(world, workspace["id"], "start"))["latest_build"]["status"] == "running"
        await world.delete("/api/v2/external-auth/fake")
        assert (await build(world, workspace["id"], "delete"))["latest_build"]["status"] == "deleted"


async def test_owners_login_is_required() -> None:
    async with deployment() as (world, _idp):
        await link(world)
        member_id, member = await world.member()
        refused(await create(world, "theirs", user=member_id))
        path = f"/api/v2/templateversions/{world.extra['template']['active_version_id']}/external-auth"

        async def states(token: str | None = None, **query: str) -> Any:
            answer = await world.get(path, params=query, token=token)
            return answer.json()[0]["authenticated"] if answer.status_code == 200 else answer.status_code

        assert await states() is True and await states(user_id="me") is True
        assert await states(user_id=member_id) is False
        assert await states(member) is False
        assert await states(member, user_id=world.user_id) == 404
        assert await states(user_id="unknown") == 400


async def test_hidden_template_reveals_no_logins() -> None:
    async with deployment() as (world, _idp):
        _, member = await world.member()
        acl = {"group_perms": {world.organization_id: ""}}
        answer = await world.request("PATCH", f"/api/v2/templates/{world.extra['template']['id']}/acl", json=acl)
        assert answer.status_code == 200, answer.text
        hidden = await create(world, "w", token=member)
        assert (hidden.status_code, "doesn't exist" in hidden.json()["message"]) == (400, True)


async def test_classic_template_requires_login() -> None:
    async with deployment() as (world, _idp):
        template = await new_template(world, "classic", use_classic_parameter_flow=True)
        await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
        world.extra["template"] = template
        refused(await create(world, "w"))


async def test_create_waits_for_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_logins, "_POLL_SECONDS", 0.01)
    asked = trio.Event()
    here = trio.lowlevel.current_trio_token()
    monkeypatch.setattr(external_logins, "_open", lambda *_: trio.from_thread.run_sync(asked.set, trio_token=here))
    async with deployment() as (world, _idp):
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}

        async def person() -> None:
            await asked.wait()
            await link(world)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(person)
            done = await run_cli(["create", "w", "--template", "full", "-y"], home=tmp_path, env=env)
        assert done.code == 0, done.stderr
        assert f"{world.url}/external-auth/fake" in done.stdout and "has been created" in done.stdout


@pytest.mark.parametrize(("scope", "given"), [("all", 200), ("no_user_data", 403)])
async def test_limited_agent_gets_no_secrets(scope: str, given: int) -> None:
    """Tokens, the key pair and secrets: by RPC and HTTP, by both names, with and without waiting."""

    def built(_job: Any) -> dict[str, Any]:
        return {"state": b"{}", "resources": [resource("box", agents=[agent(token=TOKEN, api_key_scope=scope)])]}

    with identity_provider() as idp:
        settings = server_settings("external_auth", idp.url)
        async with workspace_world(Answers(build=built), **settings) as (world, _answers):
            await link(world)
            secret = {"name": "s", "value": "of the owner", "env_name": "S", "description": "", "file_path": ""}
            assert (await world.post("/api/v2/users/me/secrets", secret)).status_code == 201
            await new_workspace(world, "w")
            for path in (
                "gitsshkey",
                "external-auth?id=fake",
                "external-auth?id=fake&listen=1",
                "gitauth?id=fake",
                "gitauth?id=fake&listen=1",
            ):
                answer = await world.get(f"/api/v2/workspaceagents/me/{path}", token=TOKEN)
                assert answer.status_code == given, (path, answer.text)
            websocket = await dial_link(world, "/api/v2/workspaceagents/me/rpc?version=2.10", token=TOKEN)
            async with open_session(websocket, role="client") as session:
                call = "/coder.agent.v2.Agent/GetManifest"
                manifest = await session.call(call, agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
            assert bool(manifest.secrets) is (scope == "all")
            assert ("of the owner" in str(manifest)) is (scope == "all")
