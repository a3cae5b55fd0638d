"""A populated deployment: users of every role, and a factory for the object of each path parameter.

    async with populated() as world:
        path = await world.fill("/api/v2/workspaces/{workspace}", "victim")

Objects are created through the API on first use, and forgotten (`drop`) after a call has changed them.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import trio

from coder.base.config import Inputs
from coder.base.secret import Secret
from coder.coderd.config.reading import server_config
from coder.coderd.store.agents.system_agents import get_agent
from coder.net.policy import DialPolicy
from coder.rpc.proto import provisioner_pb2 as pb
from tests.conformance.bodies import BODIES, PREPARATIONS
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually
from tests.kit.provisioners.scripted_provisioner import Answers, agent, resource
from tests.kit.server.server_in_process import FIRST_USER, World
from tests.kit.server.workspaces import full_agent, parameters, settled, workspace_world
from tests.kit.stand_ins.notification_receivers import PushService, mail_server, push_service
from tests.kit.stand_ins.oidc_provider import CLIENT_ID, identity_provider

SITE_ROLES = ("auditor", "template-admin", "user-admin", "owner")
UNKNOWN = "00000000-0000-4000-8000-00000000dead"
_BUILD_BOUND = ("workspacebuild", "workspaceagent", "agent", "buildnumber", "workspacename")
SCIM_KEY = "conformance-scim-key"
SILENT = 599
"""Result of a stream that sends nothing until an event occurs."""
_PATIENCE = 60.0
_QUIET = ("/me/reinit",)
"""Ends of paths whose stream is silent at first; other requests have the client's timeout."""


@dataclass
class Populated:
    """The deployment and its objects. `who` is a caller's name, `victim`, `boss` (a second owner) or `site`."""

    world: World
    tokens: dict[str, str] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    "who -> username"
    things: dict[tuple[str, str], str] = field(default_factory=dict)
    "(who, parameter) -> value"
    _counter: Any = field(default_factory=lambda: itertools.count(1))

    def fresh_name(self, prefix: str = "n") -> str:
        return f"{prefix}{next(self._counter)}"

    # ---- people

    async def token(self, who: str) -> str:
        """Return the session token of a caller, creating the user if necessary."""
        if who == "anonymous":
            return ""
        if who in {"site", "owner"}:
            return self.world.token
        if who not in self.tokens:
            await self._new_person(who)
        return self.tokens[who]

    async def _new_person(self, who: str) -> None:
        name = self.fresh_name("p")
        user_id, self.tokens[who] = await self.world.member(name)
        self.people[who] = name
        if who.startswith("organization-"):
            if who == "organization-workspace-creation-ban":
                await self.thing(who, "workspace")  # created before the ban, as recorded
            path = f"/api/v2/organizations/default/members/{user_id}/roles"
            await self._must(self.world.put(path, {"roles": [who]}))
        elif who == "boss" or who in SITE_ROLES:
            role = "owner" if who == "boss" else who
            await self._must(self.world.put(f"/api/v2/users/{user_id}/roles", {"roles": [role]}))
        elif who == "stranger":
            created = await self._create("POST", "/api/v2/organizations", {"name": self.fresh_name("org")})
            if created:
                path = f"/api/v2/organizations/{created['id']}/members/{user_id}"
                await self._must(self.world.post(path))
                await self._must(self.world.delete(f"/api/v2/organizations/default/members/{user_id}"))

    async def _must(self, call: Any) -> None:
        response = await call
        assert response.status_code < 300, response.text

    def drop(self, who: str, *, person: bool = False) -> None:
        """Forget the object of `who` after a change."""
        for key in [key for key in self.things if key[0] in {who, "site"}]:
            del self.things[key]
        if person:
            self.tokens.pop(who, None)
            self.people.pop(who, None)

    # ---- paths and bodies

    async def fill(self, path: str, who: str, *, me: bool = False) -> str:
        """Return `path` with the parameters of `who`'s objects."""
        parts = []
        for part in path.split("/"):
            if part.startswith("{"):
                part = "me" if me and part == "{user}" else await self.thing(who, _parameter(path, part[1:-1]))
            parts.append(part)
        return "/".join(parts)

    async def fill_text(self, text: str, who: str) -> str:
        """Return `text` with the `{parameter}`s of `who`."""
        for name in re.findall(r"\{(\w+)\}", text):
            text = text.replace("{" + name + "}", await self.thing(who, name))
        return text

    async def body(self, operation: str, who: str) -> Any:
        """Return the body of a valid request; None without one."""
        return await self.filled(BODIES[operation], who) if operation in BODIES else None

    async def filled(self, value: Any, who: str) -> Any:
        """Return `value` with the `{parameter}`s of `who` in its texts."""
        if isinstance(value, dict):
            return {await self.filled(key, who): await self.filled(item, who) for key, item in value.items()}
        if isinstance(value, list):
            return [await self.filled(item, who) for item in value]
        if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
            if value in _ONE_TIME:
                return _ONE_TIME[value].format(self.fresh_name())
            return await self.thing(who, value[1:-1])
        return value

    async def prepare(self, operation: str, who: str) -> None:
        """Do what `operation` requires beforehand."""
        before = PREPARATIONS.get(operation)
        if before:
            method, path = before.split(" ")
            proxy = path.startswith("/api/v2/workspaceproxies/me/")
            token = await self.thing("site", "proxy_token") if proxy else self.world.token
            await self.ask(method, await self.fill(path, who), token, await self.body(before, who))
            if path.endswith("/pause"):
                await settled(self.world, await self.thing(who, "workspace"))

    async def ask(
        self, method: str, path: str, token: str, body: Any = None, *, content: bytes | None = None
    ) -> httpx.Response:
        """Send a request; of an endless stream read only the head."""
        headers = {"Coder-Session-Token": token} if token else {}
        if path.startswith("/scim/"):
            headers = {"Authorization": f"Bearer {SCIM_KEY}"} if token else {}
        if path.startswith("/api/v2/workspaceproxies/me/"):
            headers = {"Coder-External-Proxy-Token": token} if token else {}
        if path.startswith("/api/v2/provisionerkeys/"):
            headers = {"Coder-Provisioner-Daemon-Key": token} if token else {}
        if path == "/api/v2/files" and content is None:
            content, headers["Content-Type"] = bytes(1024), "application/x-tar"
        sent: dict[str, Any] = {"content": content} if content is not None or body is None else {"json": body}
        if path.partition("?")[0].endswith(_QUIET):
            sent["timeout"] = 5
        request = self.world.client.build_request(method, path, headers=headers, **sent)
        try:
            response = await self.world.client.send(request, stream=True)
        except httpx.ReadTimeout:
            return httpx.Response(SILENT)
        try:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                with trio.fail_after(_PATIENCE):
                    await response.aread()
        finally:
            await response.aclose()
        self.world.client.cookies.clear()
        return response

    # ---- objects

    async def thing(self, who: str, parameter: str) -> str:
        """Return the value of a path parameter that belongs to `who`."""
        if parameter in _SHARED:
            who = "site"
        key = (who, parameter)
        if key not in self.things:
            maker = getattr(self, f"_new_{parameter.replace('-', '_')}", None)
            created = _FIXED.get(parameter) if maker is None else await maker(who)
            self.things[key] = created if created is not None else str(uuid4())
        return self.things[key]

    async def _create(self, method: str, path: str, body: Any, who: str = "site") -> Any:
        """Return the response to a creating call; None when it is refused (the route may be missing)."""
        response = await self.ask(method, path, await self.token(who), body)
        return response.json() if response.status_code in {200, 201} and response.content else None

    async def _id(self, path: str, body: Any, who: str = "site", key: str = "id") -> str | None:
        created = await self._create("POST", path, body, who)
        return str(created[key]) if created else None

    async def _new_user(self, who: str) -> str:
        if who in {"site", "owner"}:
            return str(FIRST_USER["username"])
        await self.token(who)
        return self.people[who]

    async def _new_user_id(self, who: str) -> str:
        response = await self.world.get(f"/api/v2/users/{await self.thing(who, 'user')}")
        return str(response.json()["id"])

    async def _new_organization(self, who: str) -> str:
        return self.world.organization_id

    async def _new_other_organization(self, who: str) -> str | None:
        return await self._id("/api/v2/organizations", {"name": self.fresh_name("org")})

    async def _new_workspace(self, who: str) -> str:
        user = await self.thing(who, "user")
        body = {"name": self.fresh_name("ws"), "template_id": self.world.extra["template"]["id"]}
        response = await self.world.post(f"/api/v2/users/{user}/workspaces", body)
        assert response.status_code == 201, response.text
        return await self._adopt(who, response.json()["id"])

    async def _adopt(self, who: str, workspace_id: str) -> str:
        """Record a workspace as that of `who`, once it is built."""
        result = await settled(self.world, workspace_id)
        build = result["latest_build"]
        self.things[who, "workspacebuild"] = build["id"]
        self.things[who, "buildnumber"] = str(build["build_number"])
        self.things[who, "workspacename"] = result["name"]
        agents = [item for part in build["resources"] for item in part.get("agents") or ()]
        self.things[who, "workspaceagent"] = agents[0]["id"]
        self.things[who, "agent"] = agents[0]["name"]
        return str(result["id"])

    async def _of_workspace(self, who: str, parameter: str) -> str:
        self.things[who, "workspace"] = await self._new_workspace(who)
        return self.things[who, parameter]

    async def _new_workspacebuild(self, who: str) -> str:
        return await self._of_workspace(who, "workspacebuild")

    async def _new_workspaceagent(self, who: str) -> str:
        return await self._of_workspace(who, "workspaceagent")

    async def _new_agent(self, who: str) -> str:
        return await self._of_workspace(who, "agent")

    async def _new_buildnumber(self, who: str) -> str:
        return await self._of_workspace(who, "buildnumber")

    async def _new_workspacename(self, who: str) -> str:
        return await self._of_workspace(who, "workspacename")

    async def agent_token(self, who: str) -> str:
        """Return the token of an agent in `who`'s workspace."""
        agent_id = UUID(await self.thing(who, "workspaceagent"))
        row = await self.world.ctx.db.read(get_agent, agent_id)
        assert row is not None
        return str(row.auth_token)

    async def _new_fileID(self, who: str) -> str | None:
        headers = {"Content-Type": "application/x-tar"}
        content = bytes(512) * 2 + self.fresh_name().encode()
        response = await self.world.request("POST", "/api/v2/files", content=content, headers=headers)
        return str(response.json()["hash"]) if response.status_code in {200, 201} else None

    async def _new_template(self, who: str) -> str | None:
        version = self.things["site", "templateversion"] = await self._new_free_version(who)
        name = self.things["site", "templatename"] = self.fresh_name("t")
        path = f"/api/v2/organizations/{self.world.organization_id}/templates"
        return await self._id(path, {"name": name, "template_version_id": version})

    async def _new_templatename(self, who: str) -> str:
        await self.thing(who, "template")
        return self.things["site", "templatename"]

    async def _new_version(self, template_id: str | None) -> Any:
        file_id = await self._new_fileID("site")
        if file_id is not None:
            self.things["site", "fileID"] = file_id  # template update permission includes reading its source file
        body: dict[str, Any] = {"storage_method": "file", "provisioner": "echo", "file_id": file_id, "tags": {}}
        if template_id:
            body["template_id"] = template_id
        path = f"/api/v2/organizations/{self.world.organization_id}/templateversions"
        created = await self._create("POST", path, body)
        with trio.fail_after(_PATIENCE):
            while created and created["job"]["status"] in {"pending", "running"}:
                created = (await self.world.get(f"/api/v2/templateversions/{created['id']}")).json()
        return created

    async def _new_templateversion(self, who: str) -> str:
        await self.thing(who, "template")
        return self.things["site", "templateversion"]

    async def _new_free_version(self, who: str) -> str:
        return str((await self._new_version(None))["id"])

    async def _new_second_version(self, who: str) -> str:
        return str((await self._new_version(await self.thing(who, "template")))["id"])

    async def _new_templateversionname(self, who: str) -> str:
        result = await self.world.get(f"/api/v2/templateversions/{await self.thing(who, 'second_version')}")
        return str(result.json()["name"])

    async def _new_jobID(self, who: str) -> str | None:
        version = await self.thing(who, "templateversion")
        return await self._id(f"/api/v2/templateversions/{version}/dry-run", {"workspace_name": "dry"})

    async def _new_preview(self, who: str) -> str | None:
        """Return the preview of a workspace's update; the operations of a template's preview find no other one."""
        return await self._id(f"/api/v2/workspaces/{await self.thing(who, 'workspace')}/update-preview", {})

    async def _new_job(self, who: str) -> str:
        version = await self.thing(who, "templateversion")
        result = await self.world.get(f"/api/v2/templateversions/{version}")
        return str(result.json()["job"]["id"])

    async def _new_keyid(self, who: str) -> str | None:
        created = await self._create("POST", "/api/v2/users/me/keys", None, who)
        return str(created["key"]).split("-")[0] if created else None

    async def _new_keyname(self, who: str) -> str | None:
        name = self.fresh_name("k")
        return name if await self._create("POST", "/api/v2/users/me/keys/tokens", {"token_name": name}, who) else None

    async def _new_group(self, who: str) -> str | None:
        name = self.things["site", "groupName"] = self.fresh_name("g")
        return await self._id(f"/api/v2/organizations/{self.world.organization_id}/groups", {"name": name})

    async def _new_groupName(self, who: str) -> str:
        await self.thing(who, "group")
        return self.things["site", "groupName"]

    async def _new_roleName(self, who: str) -> str:
        name = self.fresh_name("role")
        path = f"/api/v2/organizations/{self.world.organization_id}/members/roles"
        permission = {"negate": False, "resource_type": "template", "action": "read"}
        await self._create("POST", path, {"name": name, "organization_permissions": [permission]})
        return name

    async def _new_provisionerkey(self, who: str) -> str:
        name = self.fresh_name("pk")
        path = f"/api/v2/organizations/{self.world.organization_id}/provisionerkeys"
        created = await self._create("POST", path, {"name": name})
        self.things["site", "provisionerkey_secret"] = created["key"] if created else str(uuid4())
        return name

    async def _new_provisionerkey_secret(self, who: str) -> str:
        await self.thing(who, "provisionerkey")
        return self.things["site", "provisionerkey_secret"]

    async def _new_workspaceproxy(self, who: str) -> str | None:
        body = {"name": self.fresh_name("px"), "display_name": "P", "icon": "/e.png"}
        created = await self._create("POST", "/api/v2/workspaceproxies", body)
        self.things["site", "proxy_token"] = created["proxy_token"] if created else str(uuid4())
        return str(created["proxy"]["id"]) if created else None

    async def _new_proxy_token(self, who: str) -> str:
        await self.thing(who, "workspaceproxy")
        return self.things["site", "proxy_token"]

    async def _new_secret(self, who: str) -> str | None:
        name = self.fresh_name("s")
        body = {"name": name, "value": "v", "env_name": name}
        return name if await self._create("POST", "/api/v2/users/me/secrets", body, who) else None

    async def _new_skillName(self, who: str) -> str:
        name = self.fresh_name("skill")
        content = f"---\nname: {name}\ndescription: d\n---\nbody\n"
        await self._create("POST", "/api/experimental/users/me/skills", {"content": content}, who)
        return name

    async def _new_skill_content(self, who: str) -> str:
        return f"---\nname: {await self.thing(who, 'skillName')}\ndescription: d\n---\nother\n"

    async def _new_app(self, who: str) -> str | None:
        body = {"name": self.fresh_name("app"), "callback_url": "http://localhost:3000", "icon": ""}
        return await self._id("/api/v2/oauth2-provider/apps", body)

    async def _new_secretID(self, who: str) -> str | None:
        return await self._id(f"/api/v2/oauth2-provider/apps/{await self.thing(who, 'app')}/secrets", None)

    async def _new_task(self, who: str) -> str | None:
        body = {"template_version_id": self.world.extra["template"]["active_version_id"], "input": "do"}
        created = await self._create("POST", "/api/v2/tasks/me", body, who)
        if created is None:
            return None
        self.things[who, "workspace"] = await self._adopt(who, created["workspace_id"])
        return str(created["id"])

    # ---- a deployment with all providers (`equipped`)

    async def _push(self, who: str, name: str) -> str | None:
        service: PushService | None = self.world.extra.get("push")
        if service is None:
            return None
        subscription = service.browser(self.fresh_name("b")).subscription()
        self.things |= {(who, f"push_{key}"): value for key, value in subscription.items()}
        return subscription[name]

    async def _new_push_endpoint(self, who: str) -> str | None:
        return await self._push(who, "endpoint")

    async def _new_push_auth_key(self, who: str) -> str | None:
        return await self._push(who, "auth_key")

    async def _new_push_p256dh_key(self, who: str) -> str | None:
        return await self._push(who, "p256dh_key")

    async def _new_session(self, who: str) -> str:
        return await self.token(who)

    async def _new_app_path(self, who: str) -> str:
        return f"/@{await self.thing(who, 'user')}/{await self.thing(who, 'workspacename')}/apps/web/"

    async def _new_scim_user(self, who: str) -> str | None:
        name = self.things["site", "scim_name"] = self.fresh_name("scim")
        emails = [{"primary": True, "value": f"{name}@example.com"}]
        return await self._id("/scim/v2/Users", {"userName": name, "active": True, "emails": emails})

    async def _new_scim_name(self, who: str) -> str:
        await self.thing(who, "scim_user")
        return self.things["site", "scim_name"]

    @contextlib.asynccontextmanager
    async def running_agent(self, who: str) -> AsyncIterator[None]:
        """Connect the agent of `who`'s workspace during the block."""
        agent_id, token = UUID(await self.thing(who, "workspaceagent")), await self.agent_token(who)
        workspace = {"id": await self.thing(who, "workspace")}
        with tempfile.TemporaryDirectory() as folder:
            view_context = AgentWorld(self.world, workspace, agent_id, token)
            async with running_agent(view_context, DialPolicy(self.world.url), Path(folder)):
                yield

            async def is_disconnected() -> bool:
                return bool((await view_context.agent())["status"] != "connected")

            await eventually(is_disconnected)  # later calls must see it disconnected, not dial it


_ONE_TIME = {"{fresh}": "{}", "{assignment}": "{}=1", "{email}": "{}@example.com"}
_SHARED = frozenset(
    (
        "organization other_organization template templatename templateversion second_version free_version "
        "templateversionname jobID job fileID group groupName roleName provisionerkey provisionerkey_secret "
        "workspaceproxy proxy_token app secretID scim_user scim_name"
    ).split()
)
"""Objects that the site's administrator creates for every caller."""
_FIXED = {
    "organizationname": "coder",
    "os": "linux",
    "arch": "amd64",
    "externalauth": "dev",
    "notification_template": "11111111-1111-4111-8111-111111111111",
}


def _parameter(path: str, name: str) -> str:
    """Return the key for parameters that share a name and differ in meaning."""
    if name == "id" and path.startswith("/scim/"):
        return "scim_user"
    if name == "name" and "/secrets/" in path:
        return "secret"
    if name == "templateversion" and path.endswith("archive"):
        return "second_version"  # a version in use cannot be archived
    return name


@contextlib.asynccontextmanager
async def populated(**settings: Any) -> AsyncIterator[Populated]:
    """Yield the deployment; a daemon of the harness builds its workspaces."""
    responses = Answers(
        import_=lambda job: {
            "start_resources": [resource("box", agents=[agent()])],
            "rich_parameters": parameters(),
            "has_ai_tasks": True,
        },
        build=_build,
    )
    async with workspace_world(responses, **settings) as (world, _):
        yield Populated(world)


@contextlib.asynccontextmanager
async def equipped(**settings: Any) -> AsyncIterator[Populated]:
    """Yield the deployment with all external services: identity providers, SCIM, a push service."""
    with identity_provider() as idp, mail_server() as (box, smarthost), tempfile.TemporaryDirectory() as folder:
        idp.claims = {"sub": "s-1", "email": "person@example.com", "email_verified": True}
        env = {
            "CODER_EXTERNAL_AUTH_0_ID": "dev",
            "CODER_EXTERNAL_AUTH_0_TYPE": "custom",
            "CODER_EXTERNAL_AUTH_0_CLIENT_ID": "cid",
            "CODER_EXTERNAL_AUTH_0_CLIENT_SECRET": "sec",
            "CODER_EXTERNAL_AUTH_0_AUTH_URL": f"{idp.url}/auth",
            "CODER_EXTERNAL_AUTH_0_TOKEN_URL": f"{idp.url}/token",
            "CODER_EXTERNAL_AUTH_0_VALIDATE_URL": f"{idp.url}/validate",
            "CODER_EXTERNAL_AUTH_0_DEVICE_FLOW": "true",
            "CODER_EXTERNAL_AUTH_0_DEVICE_CODE_URL": f"{idp.url}/device",
        }
        options = {
            "external_auth_providers": server_config(Inputs(env=env), Path("/nonexistent")).external_auth_providers,
            "oidc_issuer_url": idp.url,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": Secret("sec"),
            "oauth2_github_client_id": "c",
            "oauth2_github_client_secret": Secret("s"),
            "oauth2_github_enterprise_base_url": idp.url,
            "oauth2_github_allow_everyone": True,
            "oauth2_github_device_flow": True,
            "scim_auth_header": Secret(SCIM_KEY),
            "email_smarthost": smarthost,
            "email_from": "coder@example.com",
            "notifications_fetch_interval": timedelta(seconds=0.5),
            "allow_workspace_renames": True,
            "wildcard_access_url": "*.apps.example.com",
        }
        async with (
            populated(**options, **settings) as world,
            push_service(world.world, Path(folder)) as world.world.extra["push"],
        ):
            world.world.extra["mail"] = box
            yield world


def _build(job: Any) -> dict[str, Any]:
    """Answer a build: a start creates a box with an agent that has its own token, and an app that may report for a
    task.
    """
    app = str(uuid4())
    speaks = [pb.AITask(id=str(uuid4()), app_id=app)] if job.workspace_build.metadata.task_prompt else []
    if job.workspace_build.metadata.workspace_transition != pb.START:
        return {"state": b"{}", "resources": [], "ai_tasks": speaks}
    created = full_agent(str(uuid4()))
    created.apps.append(pb.App(id=app, slug="chat", url="http://localhost:19096"))
    return {"state": b'{"version":4}', "resources": [resource("box", agents=[created])], "ai_tasks": speaks}
