"""Calls that need another program to succeed: clouds, an agent with a container engine, a chat program, a machine
attached manually, a prebuilt workspace. Each story has its own server, and uses the packaged program.

As in `stories.py`, each yields (operation, response) of calls that must succeed.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import trio

from coder.agent.network import http_api
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.net.policy import DialPolicy
from tests.kit.agents.container_engine import DEVCONTAINER, ContainerApi
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually
from tests.kit.agents.scripted_agent import workspace_world as one_workspace
from tests.kit.api.http_clients import event_stream
from tests.kit.api.security_probes import handshake
from tests.kit.provisioners.scripted_provisioner import Answers, agent, resource
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import (
    TASK_TOKEN,
    TOKEN,
    external_answer,
    listens,
    make_ready,
    new_task,
    new_workspace,
    prebuilt,
    task_world,
    workspace_world,
    world_with_preset,
)
from tests.kit.stand_ins import certificates
from tests.kit.stand_ins.scripted_http_servers import fake_app

Calls = AsyncIterator[tuple[str, httpx.Response]]
_AGENTS = "/api/v2/workspaceagents"
_CONTAINERS = "{workspaceagent}/containers"


async def machine_stories() -> Calls:
    for story in (_clouds, _container_engine, _chat, _attached, _prebuilt):
        async for call in story():
            yield call


async def _clouds() -> Calls:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        bundle = Path(folder) / "aws.pem"
        bundle.write_bytes(certificates.aws_bundle())
        settings: dict[str, Any] = {"aws_identity_certificates": str(bundle)}
        async with one_workspace(agent_fields={"instance_id": certificates.INSTANCE}, **settings) as machine:
            document = certificates.aws_document()
            attested = base64.b64encode(certificates.attested(certificates.azure_signer())).decode()
            bodies = {
                "aws": {"document": document, "signature": certificates.aws_signature(document)},
                "azure": {"signature": attested, "encoding": "pkcs7"},
                "google": {"json_web_token": certificates.google_token()},
            }
            with certificates.trusting(patch):
                for cloud, body in bodies.items():
                    path = f"{_AGENTS}/{cloud}-instance-identity"
                    yield f"POST {path}", await machine.world.post(path, body, token="")


async def _container_engine() -> Calls:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(http_api, "HttpApi", ContainerApi)
        async with (
            one_workspace() as machine,
            running_agent(machine, DialPolicy(machine.world.url), Path(folder) / "agent"),
        ):
            world, own = machine.world, f"{_AGENTS}/{machine.agent_id}/containers"
            yield f"GET {_AGENTS}/{_CONTAINERS}", await world.get(own)
            yield f"GET {_AGENTS}/{_CONTAINERS}/watch", await handshake(world.url, f"{own}/watch", world.token)
            item = f"devcontainers/{DEVCONTAINER}"
            named = f"{_AGENTS}/{_CONTAINERS}/devcontainers/{{devcontainer}}"
            yield f"POST {named}/recreate", await world.post(f"{own}/{item}/recreate")
            yield f"DELETE {named}", await world.delete(f"{own}/{item}")


async def _chat() -> Calls:
    with tempfile.TemporaryDirectory() as folder:
        async with fake_app() as app, task_world(app.port) as (world, _):
            task = await new_task(world)
            machine = AgentWorld(world, {"id": task["workspace_id"]}, UUID(task["workspace_agent_id"]), TASK_TOKEN)
            async with running_agent(machine, DialPolicy(world.url), Path(folder) / "agent"):

                async def active() -> bool:
                    result = await world.get(f"/api/v2/tasks/me/{task['id']}")
                    return bool(result.json()["status"] == "active")

                await eventually(active)
                for root in ("/api/v2/tasks", "/api/experimental/tasks"):
                    sent = await world.post(f"{root}/me/{task['id']}/send", {"input": "more"})
                    yield f"POST {root}/{{user}}/{{task}}/send", sent


async def _attached() -> Calls:
    def imported(_job: Any) -> dict[str, Any]:
        machine = resource("main", "coder_external_agent", agents=[agent()])
        return {"start_resources": [machine], "has_external_agents": True}

    async with workspace_world(Answers(import_=imported, build=external_answer)) as (world, _):
        workspace = await new_workspace(world, "machine")
        view = await world.get(f"/api/v2/workspaces/{workspace['id']}/external-agent/main/credentials")
        yield "GET /api/v2/workspaces/{workspace}/external-agent/{agent}/credentials", view


async def _prebuilt() -> Calls:
    async with world_with_preset() as (world, _, preset):
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await make_ready(world, ahead)
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        heard: list[httpx.Response] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hear_reinit, world, heard)
            await eventually(lambda: listens(world))
            claimed = await world.post("/api/v2/users/me/workspaces", body)
            assert claimed.json()["id"] == str(ahead), claimed.text
        yield f"GET {_AGENTS}/me/reinit", heard[0]


async def _hear_reinit(world: World, heard: list[httpx.Response]) -> None:
    """The response headers of a stream arrive with its first event."""
    with trio.fail_after(60):
        async with event_stream(world.url, f"{_AGENTS}/me/reinit?wait=true", {"Coder-Session-Token": TOKEN}) as stream:
            assert (await stream.line(), "prebuild_claimed" in (await stream.line() or "")) == ("event: data", True)
            heard.append(
                httpx.Response(stream.head.status_code, headers=stream.head.headers, content=b"event: data\n\n")
            )
