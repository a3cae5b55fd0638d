"""Rotating the token of a machine that somebody attached: both generations live until the new one is used."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from coder.coderd.store.agents import agents as agent_store
from coder.domain.agents.token_generations import Generation, good
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2 as pb
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent
from tests.kit.provisioners.scripted_provisioner import Answers, agent, resource
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import TOKEN, build, external_answer, new_workspace, workspace_world


def _import(job: Any) -> dict[str, Any]:
    return {
        "start_resources": [resource("main", "coder_external_agent", agents=[agent()])],
        "has_external_agents": True,
    }


def _answers() -> Answers:
    return Answers(import_=_import, build=external_answer)


async def _as_agent(world: World, token: str) -> int:
    answer = await world.request("GET", "/api/v2/workspaceagents/me/gitsshkey", token=token)
    return answer.status_code


async def _rotate(world: World, workspace: Any, name: str = "main", **rest: Any) -> httpx.Response:
    path = f"/api/v2/workspaces/{workspace['id']}/external-agent/{name}/rotate-token"
    return await world.post(path, **rest)


async def _shown(world: World, workspace: Any) -> str:
    answer = await world.get(f"/api/v2/workspaces/{workspace['id']}/external-agent/main/credentials")
    return str(answer.json()["agent_token"])


async def _changes(world: World) -> list[Any]:
    found = (await world.get("/api/v2/audit", params={"q": "resource_type:workspace", "limit": 50})).json()
    return [entry for entry in found["audit_logs"] if "agent_tokens" in entry["diff"]]


async def test_the_old_token_lives_until_the_new_one_is_used() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        answer = await _rotate(world, workspace)
        assert answer.status_code == 200, answer.text
        made = answer.json()
        fresh = made["agent_token"]
        assert fresh in made["command"] and fresh != TOKEN
        assert (made["generation"], made["good_generations"]) == (1, [0, 1])
        assert await _shown(world, workspace) == fresh
        assert await _as_agent(world, TOKEN) == 200, "nobody is cut off by a rotation"
        assert await _as_agent(world, fresh) == 200
        assert await _as_agent(world, TOKEN) == 401, "the new one has been used"
        assert await _as_agent(world, fresh) == 200
        used, rotated = await _changes(world)
        assert rotated["diff"]["agent_tokens"]["new"] == {"main 1": "waiting"}
        assert rotated["user"]["username"] == "admin"
        assert used["diff"]["agent_tokens"]["new"] == {"main 1": "used"} and used["user"] is None
        assert fresh not in str(await _changes(world)), "the log never holds the token"


async def test_a_second_rotation_replaces_the_one_that_waits() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        lost = (await _rotate(world, workspace)).json()["agent_token"]
        fresh = (await _rotate(world, workspace)).json()["agent_token"]
        assert [await _as_agent(world, token) for token in (lost, TOKEN, fresh)] == [401, 200, 200]
        assert await _as_agent(world, TOKEN) == 401
        third = (await _rotate(world, workspace)).json()
        assert third["good_generations"] == [third["generation"] - 1, third["generation"]]
        assert [await _as_agent(world, token) for token in (fresh, third["agent_token"], fresh)] == [200, 200, 401]


async def test_a_rebuild_that_keeps_the_agent_keeps_the_rotation() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        fresh = (await _rotate(world, workspace)).json()["agent_token"]
        assert await _as_agent(world, fresh) == 200
        await build(world, workspace["id"], "start")
        assert [await _as_agent(world, token) for token in (TOKEN, fresh)] == [401, 200]
        assert await _shown(world, workspace) == fresh
        await world.delete(f"/api/v2/workspaces/{workspace['id']}")
        await build(world, workspace["id"], "delete")
        assert await _as_agent(world, fresh) == 401


async def test_who_may_rotate() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        _, stranger = await world.member()
        assert (await _rotate(world, workspace, token=stranger)).status_code == 404
        assert (await _rotate(world, workspace, token="")).status_code == 401
        assert (await _rotate(world, workspace, "other")).status_code == 404
        assert (await _rotate(world, {"id": str(uuid4())})).status_code == 404
        assert await _as_agent(world, TOKEN) == 200


async def test_the_query_and_the_rule_agree() -> None:
    """What lets an agent in is decided in SQL; here it is held against the law, through four rotations."""
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        tokens, states = [TOKEN], [Generation(0, used=True)]
        for number, uses in enumerate((True, False, True, True), 1):
            tokens.append((await _rotate(world, workspace)).json()["agent_token"])
            states = [state for state in states if state.used] + [Generation(number, used=uses)]
            if uses:
                assert await _as_agent(world, tokens[-1]) == 200
            number_of = {token: index for index, token in enumerate(tokens)}
            found = [
                index
                for token, index in number_of.items()
                if await world.ctx.db.read(agent_store.get_agent_by_token, UUID(token))
            ]
            assert tuple(found) == good(states[1:]), states


async def test_what_an_agent_made_ends_with_the_token_it_was_made_by() -> None:
    """Whoever had the old token was told those of the agents of dev containers, too."""
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        place = await world.ctx.db.read(agent_store.get_agent_by_token, UUID(TOKEN))
        assert place is not None
        async with connected_agent(AgentWorld(world, workspace, place.agent.id, TOKEN)) as old:
            request = pb.CreateSubAgentRequest(name="api", directory="/w")
            made = await old.call("CreateSubAgent", request, pb.CreateSubAgentResponse)
            child = str(UUID(bytes=made.agent.auth_token))
            for path in ("credentials", "rotate-token"):
                method = "GET" if path == "credentials" else "POST"
                named = f"/api/v2/workspaces/{workspace['id']}/external-agent/api/{path}"
                assert (await world.request(method, named)).status_code == 404, "its parent attaches it"
            fresh = (await _rotate(world, workspace)).json()["agent_token"]
            assert await _as_agent(world, child) == 200, "nobody is cut off by a rotation"
            assert await _as_agent(world, fresh) == 200
            assert await _as_agent(world, child) == 401
            request.name = "other"
            for name, asked, reply in (
                ("CreateSubAgent", request, pb.CreateSubAgentResponse),
                ("CreateSubAgent", pb.CreateSubAgentRequest(id=made.agent.id), pb.CreateSubAgentResponse),
                ("ListSubAgents", pb.ListSubAgentsRequest(), pb.ListSubAgentsResponse),
                ("DeleteSubAgent", pb.DeleteSubAgentRequest(id=made.agent.id), pb.DeleteSubAgentResponse),
            ):
                with pytest.raises(RpcError, match="no longer valid"):
                    await old.call(name, asked, reply)
        async with connected_agent(AgentWorld(world, workspace, place.agent.id, fresh)) as new:
            (listed,) = (await new.call("ListSubAgents", pb.ListSubAgentsRequest(), pb.ListSubAgentsResponse)).agents
        assert listed.id == made.agent.id and listed.auth_token != made.agent.auth_token
        assert await _as_agent(world, str(UUID(bytes=listed.auth_token))) == 200
