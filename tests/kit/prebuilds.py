"""A template with a preset that workspaces are made ahead for, built by a daemon the test plays.

async with world_with_preset() as (world, answers, preset_id):
    await reconcile(world.ctx)
    (ahead,) = await eventually(lambda: prebuilt(world))
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from coder.coderd.store.workspaces import prebuilds as store
from coder.rpc.proto import agent_pb2
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents import AgentWorld, connected_agent
from tests.kit.coderd import World
from tests.kit.daemon import Answers, agent, resource
from tests.kit.workspaces import TOKEN, parameters, settled, workspace_world


def _import(instances: int) -> Any:
    preset = pb.Preset(
        name="EU",
        parameters=[pb.PresetParameter(name="region", value="eu")],
        prebuild=pb.Prebuild(instances=instances, expiration_policy=pb.ExpirationPolicy(ttl=3600)),
    )
    return lambda job: {
        "start_resources": [resource("box", agents=[agent()])],
        "rich_parameters": parameters(),
        "presets": [preset],
    }


def _build(job: Any) -> dict[str, Any]:
    metadata = job.workspace_build.metadata
    if metadata.workspace_transition != pb.START:
        return {"state": b""}
    tokens = [one.token for one in metadata.running_agent_auth_tokens]
    first = TOKEN if metadata.workspace_owner == "prebuilds" else str(uuid4())  # no two workspaces have the same
    return {"state": b"{}", "resources": [resource("box", agents=[agent(token=tokens[0] if tokens else first)])]}


@asynccontextmanager
async def world_with_preset(instances: int = 1, **settings: Any) -> AsyncIterator[tuple[World, Answers, str]]:
    answers = Answers(import_=_import(instances), build=_build)
    async with workspace_world(answers, **settings) as (world, _):
        version = world.extra["template"]["active_version_id"]
        presets = (await world.get(f"/api/v2/templateversions/{version}/presets")).json()
        yield world, answers, presets[0]["ID"]


async def prebuilt(world: World) -> list[UUID]:
    found = await world.ctx.db.read(store.list_existing)
    return [one.id for ones in found.values() for one in ones if one.is_running]


async def listens(world: World) -> bool:
    listeners = world.ctx.db._listeners
    return listeners is not None and store.CLAIMED in str(vars(listeners))


async def make_ready(world: World, workspace_id: UUID) -> None:
    """Its agent comes up and says so."""
    workspace = await settled(world, str(workspace_id))
    agent_id = workspace["latest_build"]["resources"][0]["agents"][0]["id"]
    async with connected_agent(AgentWorld(world, workspace, UUID(agent_id), TOKEN)) as one:
        lifecycle = agent_pb2.Lifecycle(state=agent_pb2.Lifecycle.READY)
        await one.call("UpdateLifecycle", agent_pb2.UpdateLifecycleRequest(lifecycle=lifecycle), agent_pb2.Lifecycle)
