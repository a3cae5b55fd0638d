"""A second organization with an administrator, a template, a daemon and members; builds whose identity is visible."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.scripted_agent import AgentWorld
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, new_template, resource, working_daemon
from tests.kit.recordings.exchange_replay import server_settings
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import settled
from tests.kit.stand_ins.oidc_provider import identity_provider

PROVIDER = "dev"


@dataclass
class Elsewhere:
    """A second organization with an administrator, a template for tasks and a daemon; owners by name."""

    world: World
    answers: Answers
    organization: str
    template: Any
    home: str
    "The default organization."
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

    @property
    def token_of_build(self) -> str:
        """Session token of the last build."""
        return str(self.answers.seen[-1].workspace_build.metadata.workspace_owner_session_token)

    def delivered(self) -> tuple[bool, bool, list[str]]:
        """Return the identity of the last build: a session token, a private key, providers with tokens."""
        work = self.answers.seen[-1].workspace_build
        key, token = work.metadata.workspace_owner_ssh_private_key, work.metadata.workspace_owner_session_token
        return bool(token), bool(key), [item.id for item in work.external_auth_providers]


EVERYTHING = (True, True, [PROVIDER])
NOTHING: tuple[bool, bool, list[str]] = (False, False, [])


def _agent(token: str, app_id: str, session_token: str) -> pb.Agent:
    """An agent whose template wrote the owner's session token wherever it could."""
    url = f"http://localhost:1/?login={session_token}"
    return agent(
        token=token,
        apps=[pb.App(id=app_id, slug="chat", url=url), pb.App(slug="shell", command=f"login {session_token}")],
        env={"CODER_SESSION_TOKEN": session_token, "PLACE": "here"},
        scripts=[pb.Script(display_name="login", script=f"login {session_token}", run_on_start=True)],
        metadata=[pb.Agent.Metadata(key="login", script="true", interval=1, timeout=1)],
    )


@asynccontextmanager
async def elsewhere(**settings: Any) -> AsyncIterator[Elsewhere]:
    result: Elsewhere

    def build(job: Any) -> dict[str, Any]:
        metadata = job.workspace_build.metadata
        if metadata.workspace_transition != pb.START:
            return {"state": b"{}"}
        app, token = str(uuid4()), str(uuid4())
        result.agent_tokens[metadata.workspace_id] = token
        agents = [_agent(token, app, metadata.workspace_owner_session_token)]
        speaks = [pb.AITask(id=str(uuid4()), app_id=app)] if metadata.task_prompt else []
        box = resource("box", agents=agents)
        leaked = f"login {metadata.workspace_owner_session_token}"
        box.metadata.append(pb.Resource.Metadata(key="login", value=leaked))
        return {"state": f'{{"login": "{leaked}"}}'.encode(), "ai_tasks": speaks, "resources": [box]}

    provider = pb.ExternalAuthProviderResource(id=PROVIDER, optional=True)
    answers = Answers(
        import_=lambda job: {
            "start_resources": [resource("box", agents=[agent()])],
            "has_ai_tasks": True,
            "external_auth_providers": [provider],
        },
        build=build,
        lines=lambda job: [f"login {job.workspace_build.metadata.workspace_owner_session_token}"],
    )
    with identity_provider() as idp:
        async with running_coderd(first_user=True, **server_settings("external_auth", idp.url) | settings) as world:
            home = world.organization_id
            created = await world.post("/api/v2/organizations", {"name": "elsewhere"})
            world.organization_id = created.json()["id"]
            async with working_daemon(world, answers, organization="elsewhere"):
                template = await new_template(world)
                await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
                result = Elsewhere(world, answers, world.organization_id, template, home, {"admin": world.user_id})
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
