"""Two organizations with the same objects in each, for tests of what one may not see of the other.

    async with foreign_world() as found:
        found.mine["template"], found.foreign["template"]

The attacker administers an organization of their own with everything in it. Foreign objects belong to the default
organization; gone objects were deleted from either.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import trio

from coder.coderd.store.agents.system_agents import get_agent
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners.scripted_provisioner import Answers, ended, resource, upload, working_daemon
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import full_agent, parameters, settled, workspace_world

_SHARED_AT_HOME = ("organization", "template", "version", "second_version", "preset", "group")
"What a plain member of the default organization may see of it."


@dataclass
class ForeignWorld:
    """What a test asks with."""

    world: World
    token: str = ""
    "The attacker's session."
    agent_token: str = ""
    neighbour_token: str = ""
    "Of a plain member of the default organization, who may see its templates and nobody's workspaces."
    mine: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    foreign_gone: dict[str, str] = field(default_factory=dict)
    stranger_token: str = ""
    "Of a plain member of the attacker's organization."
    strangers: dict[str, str] = field(default_factory=dict)
    neighbours: dict[str, str] = field(default_factory=dict)


@contextlib.asynccontextmanager
async def foreign_world(**settings: Any) -> AsyncIterator[ForeignWorld]:
    """The deployment, for the length of the block."""
    answers = Answers(import_=lambda job: _imported(), build=_built)
    async with workspace_world(answers, **settings) as (world, _):
        organization = (await _post(world, "/api/v2/organizations", {"name": "elsewhere"}))["id"]
        user_id, token = await world.member("attacker", organizations=[organization])
        path = f"/api/v2/organizations/{organization}/members/{user_id}/roles"
        answer = await world.put(path, {"roles": ["organization-admin"]})
        assert answer.status_code == 200, answer.text
        victim_id, victim = await world.member("victim")
        _, neighbour = await world.member("neighbour")
        found = ForeignWorld(world, token, neighbour_token=neighbour)
        async with working_daemon(world, answers, organization="elsewhere", name="elsewhere-daemon"):
            found.mine = await _everything(world, token, organization, user_id, "attacker")
            found.foreign = await _everything(world, world.token, world.organization_id, victim_id, "victim", victim)
            found.gone = await _gone(world, token, organization, "gone")
            found.foreign_gone = await _gone(world, world.token, world.organization_id, "lost")
            _, found.stranger_token = await world.member("stranger", organizations=[organization])
            found.strangers = await _workspace(
                world, found.stranger_token, organization, found.mine["template"], "stranger-box"
            )
            found.neighbours = await _workspace(
                world, neighbour, world.organization_id, found.foreign["template"], "neighbour-box"
            )
            for kind in _SHARED_AT_HOME:
                found.neighbours[kind] = found.foreign[kind]
            row = await world.ctx.db.read(get_agent, UUID(found.mine["agent"]))
            assert row is not None
            found.agent_token = str(row.auth_token)
            yield found


def _imported() -> dict[str, Any]:
    preset = pb.Preset(name="small", parameters=[pb.PresetParameter(name="region", value="eu")])
    return {
        "start_resources": [resource("box", agents=[full_agent()])],
        "rich_parameters": parameters(),
        "presets": [preset],
        "has_ai_tasks": True,
    }


def _built(job: Any) -> dict[str, Any]:
    if job.workspace_build.metadata.workspace_transition != pb.START:
        return {"state": b"{}", "resources": []}
    return {"state": b'{"version":4}', "resources": [resource("box", agents=[full_agent(str(uuid4()))])]}


async def _everything(
    world: World, token: str, organization: str, user_id: str, who: str, owner_token: str = ""
) -> dict[str, str]:
    """One of each kind. `token` administers the organization, `owner_token` is whose the workspace is."""
    found = {"organization": organization, "user": user_id}
    for name in ("version", "free_version", "second_version"):
        found["file"] = await upload(world, {"main.tf": f"# {who} {name}"}, token=token)
        body = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": found["file"]}
        if name == "second_version":
            body["template_id"] = found["template"]
        made = await _post(world, f"/api/v2/organizations/{organization}/templateversions", body, token)
        with trio.fail_after(60):
            await ended(world, f"/api/v2/templateversions/{made['id']}")
        found[name], found["job"] = made["id"], made["job"]["id"]
        if name == "free_version":
            continue
        if name == "version":
            wanted = {"name": f"{who}s", "template_version_id": made["id"]}
            template = await _post(world, f"/api/v2/organizations/{organization}/templates", wanted, token)
            found["template"] = template["id"]
    presets = (await world.get(f"/api/v2/templateversions/{found['version']}/presets")).json()
    found["preset"] = presets[0]["ID"]
    group = await _post(world, f"/api/v2/organizations/{organization}/groups", {"name": f"{who}-group"}, token)
    found["group"] = group["id"]
    await _post(world, f"/api/v2/organizations/{organization}/provisionerkeys", {"name": f"{who}-key"}, token)
    daemons = (await world.get(f"/api/v2/organizations/{organization}/provisionerdaemons")).json()
    found["daemon"] = daemons[0]["id"]
    found |= await _workspace(world, owner_token or token, organization, found["template"], f"{who}-box")
    return found


async def _workspace(world: World, token: str, organization: str, template: str, name: str) -> dict[str, str]:
    path = f"/api/v2/organizations/{organization}/members/me/workspaces"
    made = await _post(world, path, {"name": name, "template_id": template}, token)
    ready = await settled(world, made["id"])
    (agent,) = [one for part in ready["latest_build"]["resources"] for one in part.get("agents") or ()]
    return {
        "workspace": made["id"],
        "build": ready["latest_build"]["id"],
        "build_job": ready["latest_build"]["job"]["id"],
        "resource": agent["resource_id"],
        "agent": agent["id"],
        "app": agent["apps"][0]["id"],
        "log_source": agent["log_sources"][0]["id"],
    }


async def _gone(world: World, token: str, organization: str, name: str) -> dict[str, str]:
    """Objects of the attacker's own organization that are no more."""
    base = f"/api/v2/organizations/{organization}"
    file_id = await upload(world, {"main.tf": f"# {name}"}, token=token)
    body = {"storage_method": "file", "provisioner": "echo", "tags": {}, "file_id": file_id}
    version = await _post(world, f"{base}/templateversions", body, token)
    with trio.fail_after(60):
        await ended(world, f"/api/v2/templateversions/{version['id']}")
    template = await _post(world, f"{base}/templates", {"name": name, "template_version_id": version["id"]}, token)
    group = await _post(world, f"{base}/groups", {"name": f"{name}-group"}, token)
    user_id, _ = await world.member(name, organizations=[organization])
    found = await _workspace(world, token, organization, template["id"], f"{name}-box")
    await _post(world, f"/api/v2/workspaces/{found['workspace']}/builds", {"transition": "delete"}, token)
    await settled(world, found["workspace"])
    for path in (f"/api/v2/templates/{template['id']}", f"/api/v2/groups/{group['id']}", f"/api/v2/users/{user_id}"):
        answer = await world.delete(path)
        assert answer.status_code < 300, answer.text
    return {"template": template["id"], "group": group["id"], "user": user_id, **found}


async def _post(world: World, path: str, body: Any, token: str | None = None) -> Any:
    answer = await world.post(path, body, token=token)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json()
