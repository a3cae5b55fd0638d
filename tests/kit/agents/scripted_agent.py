"""Workspaces with an agent, and agents that the test scripts over the real RPC connection.

async with workspace_world() as world:
    async with connected_agent(world) as agent:
        manifest = await agent.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from coder.base.secret import Secret
from coder.coderd.services.agents import agent_connections
from coder.net.dial import DialPolicy
from coder.net.websocket import WebSocketStream, connect_websocket
from coder.rpc.session import Session, open_session
from tests.kit.provisioners.scripted_provisioner import (
    Answers,
    agent,
    ended,
    job_ended,
    new_template,
    resource,
    working_daemon,
)
from tests.kit.server.server_in_process import Filling, World, running_coderd


async def eventually(look: Callable[[], Any], *, seconds: float = 60) -> Any:
    """Waits until `await look()` is true; for facts that arrive through the database."""
    with trio.fail_after(seconds):
        while not (found := await look()):
            await trio.sleep(0.02)
        return found


def check_links_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers find a link of an outdated build in a tenth of a second instead of fifteen."""
    monkeypatch.setattr(agent_connections, "CONNECTION_UPDATE_FREQUENCY", timedelta(seconds=0.1))


@dataclass
class AgentWorld:
    """A running server, one started workspace, its agent's token."""

    world: World
    workspace: Any
    agent_id: UUID
    token: str

    async def agent(self) -> Any:
        return (await self.world.get(f"/api/v2/workspaceagents/{self.agent_id}")).json()


async def _new_plain_template(world: World) -> Any:
    template = await new_template(world)
    with trio.fail_after(60):
        await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
    return template


async def _fill(world: World) -> dict[str, Any]:
    async with working_daemon(world):
        return {"plain template": await _new_plain_template(world)}


PLAIN_TEMPLATE = Filling("plain_template", _fill)
"""The template `tpl`, whose version is imported."""


@contextlib.asynccontextmanager
async def workspace_world(*, agent_fields: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[AgentWorld]:
    """A server with one running workspace `dev` whose agent `main` has not connected yet."""
    async with running_coderd(first_user=True, filling=PLAIN_TEMPLATE, **settings) as world:
        yield await start_workspace(world, agent_fields)


async def start_workspace(world: World, agent_fields: dict[str, Any] | None = None) -> AgentWorld:
    """Creates the workspace and waits until it runs; a daemon for later builds stays in the server's nursery."""
    token = str(uuid4())

    def build(job: Any) -> dict[str, Any]:
        if job.workspace_build.metadata.workspace_transition:
            return {"state": b"{}"}
        return {"state": b"{}", "resources": [resource("box", agents=[agent(token=token, **(agent_fields or {}))])]}

    async def work() -> None:
        # The daemon goes with the server; that its connection breaks is no failure of a test.
        with contextlib.suppress(Exception):
            async with working_daemon(world, Answers(build=build)):
                await trio.sleep_forever()

    world.ctx.nursery.start_soon(work)
    template = world.extra.get("plain template") or await _new_plain_template(world)
    made = await world.post("/api/v2/users/me/workspaces", {"template_id": template["id"], "name": "dev"})
    assert made.status_code == 201, made.text
    with trio.fail_after(60):
        await job_ended(world, made.json()["latest_build"]["job"]["id"])
    workspace = (await world.get(f"/api/v2/workspaces/{made.json()['id']}")).json()
    assert workspace["latest_build"]["status"] == "running", workspace
    agents = workspace["latest_build"]["resources"][0]["agents"]
    return AgentWorld(world, workspace, UUID(agents[0]["id"]), token)


@dataclass
class FakeAgent:
    session: Session
    websocket: WebSocketStream

    async def call(self, name: str, request: Any, reply: Any) -> Any:
        return await self.session.call(f"/coder.agent.v2.Agent/{name}", request, reply)


async def dial_link(world: World, path: str, *, token: str) -> WebSocketStream:
    """A WebSocket to one of our links."""
    return await connect_websocket(DialPolicy(world.url, token=Secret(token)), path)


@contextlib.asynccontextmanager
async def connected_agent(view_context: AgentWorld, *, version: str = "2.10") -> AsyncIterator[FakeAgent]:
    """An agent on the wire."""
    path = f"/api/v2/workspaceagents/me/rpc?version={version}&role=agent"
    websocket = await dial_link(view_context.world, path, token=view_context.token)
    async with open_session(websocket, role="client") as session:
        yield FakeAgent(session, websocket)
