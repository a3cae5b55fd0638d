"""Owners of workspaces in an organization, and the workspaces that get their owner's token, key and secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx
import trio

from coder.coderd.services.login.provider_tokens import LinkWaits
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.rpc.proto import agent_pb2
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, new_template, resource, working_daemon
from tests.kit.recordings.exchange_replay import server_settings
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import make_ready, prebuilt, settled, world_with_preset
from tests.kit.stand_ins.oidc_provider import identity_provider

PROVIDER = "dev"


@dataclass
class Elsewhere:
    """A second organization with an administrator, a template for tasks and a daemon; owners by name."""

    world: World
    answers: Answers
    organization: str
    template: Any
    ids: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    agent_tokens: dict[str, str] = field(default_factory=dict)
    "Tokens of the last start, by workspace id."

    async def add(self, name: str, *organizations: str, role: str = "") -> None:
        self.ids[name], self.tokens[name] = await self.world.member(name, organizations=list(organizations))
        if role:
            path = f"/api/v2/organizations/{self.organization}/members/{name}/roles"
            assert (await self.world.put(path, {"roles": [role]})).status_code == 200

    async def create(self, owner: str) -> Any:
        """Create a workspace for the owner as a site owner, and wait for its build."""
        body = {"template_id": self.template["id"], "name": f"w{uuid4().hex[:12]}"}
        created = await self.world.post(f"/api/v2/users/{self.ids[owner]}/workspaces", body)
        assert created.status_code == 201, created.text
        return await settled(self.world, created.json()["id"])

    async def link(self, owner: str) -> None:
        """Link the owner's account at the provider."""
        path, token = f"/api/v2/external-auth/{PROVIDER}/device", self.tokens[owner]
        begun = (await self.world.get(path, token=token)).json()
        linked = await self.world.post(path, {"device_code": begun["device_code"]}, token=token)
        assert linked.status_code == 204, linked.text

    def agent_of(self, workspace: Any) -> AgentWorld:
        view = workspace["latest_build"]["resources"][0]["agents"][0]
        return AgentWorld(self.world, workspace, UUID(view["id"]), self.agent_tokens[workspace["id"]])

    def delivered(self) -> tuple[bool, bool, list[str]]:
        """Return the identity of the last build: a session token, a private key, providers with tokens."""
        work = self.answers.seen[-1].workspace_build
        key, token = work.metadata.workspace_owner_ssh_private_key, work.metadata.workspace_owner_session_token
        return bool(token), bool(key), [item.id for item in work.external_auth_providers]


EVERYTHING = (True, True, [PROVIDER])
NOTHING: tuple[bool, bool, list[str]] = (False, False, [])


@asynccontextmanager
async def elsewhere() -> AsyncIterator[Elsewhere]:
    result: Elsewhere

    def build(job: Any) -> dict[str, Any]:
        metadata = job.workspace_build.metadata
        if metadata.workspace_transition != pb.START:
            return {"state": b"{}"}
        app, token = str(uuid4()), str(uuid4())
        result.agent_tokens[metadata.workspace_id] = token
        agents = [agent(token=token, apps=[pb.App(id=app, slug="chat", url="http://localhost:1")])]
        speaks = [pb.AITask(id=str(uuid4()), app_id=app)] if metadata.task_prompt else []
        return {"state": b"{}", "ai_tasks": speaks, "resources": [resource("box", agents=agents)]}

    provider = pb.ExternalAuthProviderResource(id=PROVIDER, optional=True)
    answers = Answers(
        import_=lambda job: {
            "start_resources": [resource("box", agents=[agent()])],
            "has_ai_tasks": True,
            "external_auth_providers": [provider],
        },
        build=build,
    )
    with identity_provider() as idp:
        async with running_coderd(first_user=True, **server_settings("external_auth", idp.url)) as world:
            home = world.organization_id
            created = await world.post("/api/v2/organizations", {"name": "elsewhere"})
            world.organization_id = created.json()["id"]
            async with working_daemon(world, answers, organization="elsewhere"):
                template = await new_template(world)
                await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
                result = Elsewhere(world, answers, world.organization_id, template, {"admin": world.user_id})
                world.organization_id = home
                await result.add("boss", result.organization, role="organization-admin")
                await result.add("insider", result.organization)
                await result.add("suspended", result.organization)
                await result.add("outsider", home)
                path = f"/api/v2/organizations/{result.organization}/members/admin"
                assert (await world.delete(path, token=result.tokens["boss"])).status_code == 204
                suspended = await world.put(f"/api/v2/users/{result.ids['suspended']}/status/suspend")
                assert suspended.status_code == 200, suspended.text
                yield result


def _maker() -> dict[str, Any]:
    """Create a role that creates workspaces and tasks for other members, and reads no users outside of the
    organization.
    """
    grants = ("workspace:create", "workspace:read", "task:create", "task:read", "template:read", "template:use")
    pairs = [grant.split(":") for grant in grants]
    permissions = [{"negate": False, "resource_type": kind, "action": action} for kind, action in pairs]
    none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
    return {"name": "maker", "display_name": "", "organization_permissions": permissions, **none}


OWNERS: dict[str, dict[str, int]] = {
    # caller: owner -> status; "dormant" has never logged in
    "boss": {"boss": 201, "insider": 201, "dormant": 201, "suspended": 403, "outsider": 403, "admin": 403},
    "maker": {"insider": 201, "dormant": 201, "suspended": 403, "outsider": 404, "admin": 404},
    "insider": {"insider": 201, "dormant": 403, "suspended": 403, "outsider": 404, "admin": 404},
    "site-owner": {"insider": 201, "dormant": 201, "suspended": 201, "outsider": 201, "admin": 201},
}


async def test_owner_must_be_active_member() -> None:
    wrong = []
    async with elsewhere() as result:
        world = result.world
        roles = f"/api/v2/organizations/{result.organization}/members/roles"
        assert (await world.post(roles, _maker())).status_code == 200
        await result.add("maker", result.organization, role="maker")
        body = {"email": "d@b.c", "username": "dormant", "password": "SomeSecure123!"}
        created = await world.post("/api/v2/users", body | {"organization_ids": [result.organization]})
        result.ids["dormant"] = created.json()["id"]
        result.tokens["site-owner"] = world.token
        template, version = result.template["id"], result.template["active_version_id"]
        for caller, owners in OWNERS.items():
            for owner, expected in owners.items():
                for path, more in (
                    (f"users/{owner}/workspaces", {"template_id": template}),
                    (f"users/{result.ids[owner]}/workspaces", {"template_version_id": version}),
                    (f"organizations/elsewhere/members/{owner}/workspaces", {"template_id": template}),
                    (
                        f"organizations/{result.organization}/members/{result.ids[owner]}/workspaces",
                        {"template_version_id": version},
                    ),
                    (f"tasks/{owner}", {"template_version_id": version, "input": "x"}),
                    (f"tasks/{result.ids[owner]}", {"template_version_id": version, "input": "x"}),
                ):
                    wanted = {"name": f"w{uuid4().hex[:12]}", **more}
                    answer = await world.post(f"/api/v2/{path}", wanted, token=result.tokens[caller])
                    if answer.status_code != expected:
                        wrong.append(f"{caller} {path}: {answer.status_code} {answer.text[:120]}")
                view = await world.get(
                    f"/api/v2/templateversions/{version}/external-auth",
                    params={"user_id": result.ids[owner]},
                    token=result.tokens[caller],
                )
                if view.is_success != (expected == 201):
                    wrong.append(f"{caller} sees the accounts of {owner}: {view.status_code}")
        body = {"name": "x", "template_id": template}
        refused = await world.post("/api/v2/users/outsider/workspaces", body, token=result.tokens["boss"])
    assert not wrong, "\n".join(wrong)
    assert refused.json()["message"] == "The workspace's owner must be an active member of the template's organization."


async def test_build_gets_active_members_identity() -> None:
    """Also when a site owner who is no member creates a workspace for a member."""
    async with elsewhere() as result:
        for owner in ("insider", "outsider"):
            await result.link(owner)
        for owner, expected in (("insider", EVERYTHING), ("outsider", NOTHING), ("suspended", NOTHING)):
            workspace = await result.create(owner)
            assert result.delivered() == expected, owner
            assert workspace["latest_build"]["status"] == "running"
        assert result.answers.seen[-1].workspace_build.metadata.workspace_owner_ssh_public_key


async def _doors(result: Elsewhere, workspace: Any) -> list[httpx.Response]:
    token = result.agent_tokens[workspace["id"]]
    me = "/api/v2/workspaceagents/me"
    paths = ("gitsshkey", f"external-auth?id={PROVIDER}", f"gitauth?id={PROVIDER}")
    return [await result.world.get(f"{me}/{path}", token=token) for path in paths]


async def _secrets(link: Any) -> list[str]:
    manifest = await link.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
    return [secret.env_name for secret in manifest.secrets]


async def test_identity_ends_with_the_membership() -> None:
    """For the running agent, on old and new connections, and for the next build. Rejoining restores it."""
    async with elsewhere() as result:
        world, boss = result.world, result.tokens["boss"]
        await result.link("insider")
        secret = {"name": "db", "value": "hush", "env_name": "DB"}
        kept = await world.post("/api/v2/users/me/secrets", secret, token=result.tokens["insider"])
        assert kept.status_code == 201, kept.text
        workspace = await result.create("insider")
        assert result.delivered() == EVERYTHING
        member = f"/api/v2/organizations/{result.organization}/members/insider"
        builds = f"/api/v2/workspaces/{workspace['id']}/builds"
        async with connected_agent(result.agent_of(workspace)) as link:
            assert [answer.status_code for answer in await _doors(result, workspace)] == [200, 200, 200]
            assert await _secrets(link) == ["DB"]
            assert (await world.delete(member, token=boss)).status_code == 204
            refused = await _doors(result, workspace)
            assert [answer.status_code for answer in refused] == [403, 403, 403]
            assert await _secrets(link) == []
        async with connected_agent(result.agent_of(workspace)) as link:
            assert await _secrets(link) == []
        for transition in ("start", "stop", "start"):
            built = await world.post(builds, {"transition": transition}, token=boss)
            assert built.status_code == 201, built.text
            workspace = await settled(world, workspace["id"])
            assert workspace["latest_build"]["status"] in {"running", "stopped"}
            assert result.delivered() == NOTHING, transition
        assert [answer.status_code for answer in await _doors(result, workspace)] == [403, 403, 403]
        assert (await world.post(member, token=boss)).status_code == 200
        assert [answer.status_code for answer in await _doors(result, workspace)] == [200, 200, 200]
        assert (await world.post(builds, {"transition": "start"}, token=boss)).status_code == 201
        await settled(world, workspace["id"])
        assert result.delivered() == EVERYTHING


async def test_waiting_agents_lose_account() -> None:
    """An agent that waits for its owner's account gets none after the owner has left."""
    async with elsewhere() as result:
        world, heard = result.world, []
        workspace = await result.create("insider")
        token = result.agent_tokens[workspace["id"]]

        async def wait() -> None:
            path = f"/api/v2/workspaceagents/me/external-auth?id={PROVIDER}&listen"
            heard.append((await world.get(path, token=token)).status_code)

        async def waits() -> bool:
            return bool(world.ctx.part(LinkWaits)._waiting)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await eventually(waits)
            member = f"/api/v2/organizations/{result.organization}/members/insider"
            assert (await world.delete(member, token=result.tokens["boss"])).status_code == 204
            await result.link("insider")
        assert heard == [403]


async def test_claim_requires_member() -> None:
    """The system user is exempt; the user who claims is not."""
    async with world_with_preset() as (world, answers, preset):
        home = (await world.post("/api/v2/organizations", {"name": "home"})).json()["id"]
        await world.member("outsider", organizations=[home])
        await world.member("claimer")
        boss, token = await world.member("boss")
        path = f"/api/v2/organizations/default/members/{boss}/roles"
        assert (await world.put(path, {"roles": ["organization-admin"]})).status_code == 200
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, ahead)
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        refused = await world.post("/api/v2/users/outsider/workspaces", body, token=token)
        assert (refused.status_code, await prebuilt(world)) == (403, [ahead])
        claimed = await world.post("/api/v2/users/claimer/workspaces", body, token=token)
        assert claimed.json()["id"] == str(ahead), claimed.text
        await settled(world, str(ahead))
        metadata = answers.seen[-1].workspace_build.metadata
        assert metadata.workspace_owner_session_token and metadata.workspace_owner_ssh_private_key
