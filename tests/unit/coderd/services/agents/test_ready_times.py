"""A start is measured once, when its last agent has started, with the worst result of all agents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import AgentWorld, FakeAgent, connected_agent
from tests.kit.provisioners.scripted_provisioner import Answers, agent, resource
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world

FAMILY = "coderd_template_workspace_build_duration_seconds"
TOKENS = {name: str(uuid4()) for name in ("one", "two")}


def _build(job: Any) -> dict[str, Any]:
    return {"state": b"{}", "resources": [resource("box", agents=[agent(n, token=t) for n, t in TOKENS.items()])]}


async def _send_states(agent: FakeAgent, *states: str) -> None:
    for state in states:
        lifecycle = agent_pb2.Lifecycle(state=agent_pb2.Lifecycle.State.Value(state))
        lifecycle.changed_at.FromDatetime(datetime.now(UTC) + timedelta(seconds=7))
        request = agent_pb2.UpdateLifecycleRequest(lifecycle=lifecycle)
        await agent.call("UpdateLifecycle", request, agent_pb2.Lifecycle)


async def _child(world: World, workspace: Any, name: str) -> AgentWorld:
    """Create a sub-agent of agent `name`, whose start does not count for the workspace."""
    async with connected_agent(AgentWorld(world, workspace, UUID(int=0), TOKENS[name])) as parent:
        request = agent_pb2.CreateSubAgentRequest(name="inner")
        response = await parent.call("CreateSubAgent", request, agent_pb2.CreateSubAgentResponse)
    return AgentWorld(world, workspace, UUID(bytes=response.agent.id), str(UUID(bytes=response.agent.auth_token)))


async def _report(world: World, workspace: Any, name: str, *states: str) -> None:
    agents = {agent["name"]: agent["id"] for part in workspace["latest_build"]["resources"] for agent in part["agents"]}
    async with connected_agent(AgentWorld(world, workspace, UUID(agents[name]), TOKENS[name])) as one:
        await _send_states(one, *states)


async def _metrics(world: World) -> list[str]:
    text = await world.ctx.services.metrics.exposition()
    return [line for line in text.splitlines() if line.startswith((f"{FAMILY}_count", f"{FAMILY}_sum"))]


async def test_start_with_two_agents() -> None:
    async with workspace_world(Answers(build=_build)) as (world, _):
        workspace = await new_workspace(world)
        await _report(world, workspace, "one", "STARTING", "READY", "READY")
        assert await _metrics(world) == [], "the other agent has not reported"
        await _report(world, workspace, "two", "STARTING", "START_ERROR")
        labels = 'is_prebuild="false",organization_name="coder",status="error",template_name="full",transition="start"'
        count, total = sorted(await _metrics(world))
        assert count == f"{FAMILY}_count{{{labels}}} 1"
        assert 7 < float(total.rpartition(" ")[2]) < 3600, "in seconds"
        await _report(world, workspace, "two", "STARTING", "READY")
        assert sorted(await _metrics(world)) == [count, total], "a reboot of its machine is no start of the workspace"
        for name, state in (("one", "READY"), ("two", "START_TIMEOUT")):
            await _report(world, workspace, name, "STARTING")
            await _report(world, workspace, name, state)
        assert sorted(await _metrics(world)) == [count, total], (
            "the connection was lost before the end of a later start"
        )


async def test_first_start_over_two_connections() -> None:
    async with workspace_world(Answers(build=_build)) as (world, _):
        workspace = await new_workspace(world)
        await _report(world, workspace, "one", "STARTING", "READY")
        await _report(world, workspace, "two", "STARTING")
        assert await _metrics(world) == []
        child = await _child(world, workspace, "one")
        async with connected_agent(child) as sub_agent:
            await _send_states(sub_agent, "STARTING", "START_ERROR")
        await _report(world, workspace, "two", "READY")
        count, _ = sorted(await _metrics(world))
        assert count.endswith(" 1") and 'status="success"' in count
