"""Token rotation of attached machines: both generations are valid until the new one is used."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from coder.base.clock import FakeClock
from coder.coderd.store.agents import agents as agent_store
from coder.domain.agents.token_generations import Generation, good
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2 as pb
from coder.rpc.proto import provisioner_pb2 as provisioner
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent
from tests.kit.programs.command_line import run_cli
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


async def _status_of_agent(world: World, token: str) -> int:
    answer = await world.request("GET", "/api/v2/workspaceagents/me/gitsshkey", token=token)
    return answer.status_code


async def _rotate(world: World, workspace: Any, name: str = "main", **rest: Any) -> httpx.Response:
    path = f"/api/v2/workspaces/{workspace['id']}/external-agent/{name}/rotate-token"
    return await world.post(path, **rest)


async def _current_token(world: World, workspace: Any) -> str:
    answer = await world.get(f"/api/v2/workspaces/{workspace['id']}/external-agent/main/credentials")
    return str(answer.json()["agent_token"])


async def _token_entries(world: World) -> list[Any]:
    response = (await world.get("/api/v2/audit", params={"q": "resource_type:workspace", "limit": 50})).json()
    return [entry for entry in response["audit_logs"] if "agent_tokens" in entry["diff"]]


async def test_old_token_valid_until_new_one_used() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        answer = await _rotate(world, workspace)
        assert answer.status_code == 200, answer.text
        rotation = answer.json()
        fresh = rotation["agent_token"]
        assert fresh in rotation["command"] and fresh != TOKEN
        assert (rotation["generation"], rotation["good_generations"]) == (1, [0, 1])
        assert await _current_token(world, workspace) == fresh
        assert await _status_of_agent(world, TOKEN) == 200, "a rotation disconnects no agent"
        assert await _status_of_agent(world, fresh) == 200
        assert await _status_of_agent(world, TOKEN) == 401, "the new one has been used"
        assert await _status_of_agent(world, fresh) == 200
        used, rotated = await _token_entries(world)
        assert rotated["diff"]["agent_tokens"]["new"] == {"main 1": "waiting"}
        assert rotated["user"]["username"] == "admin"
        assert used["diff"]["agent_tokens"]["new"] == {"main 1": "used"} and used["user"] is None
        assert fresh not in str(await _token_entries(world)), "the log never holds the token"


async def test_second_rotation_replaces_unused_token() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        lost = (await _rotate(world, workspace)).json()["agent_token"]
        fresh = (await _rotate(world, workspace)).json()["agent_token"]
        assert [await _status_of_agent(world, token) for token in (lost, TOKEN, fresh)] == [401, 200, 200]
        assert await _status_of_agent(world, TOKEN) == 401
        third = (await _rotate(world, workspace)).json()
        assert third["good_generations"] == [third["generation"] - 1, third["generation"]]
        assert [await _status_of_agent(world, token) for token in (fresh, third["agent_token"], fresh)] == [
            200,
            200,
            401,
        ]


async def test_rotation_survives_rebuild() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        fresh = (await _rotate(world, workspace)).json()["agent_token"]
        assert await _status_of_agent(world, fresh) == 200
        await build(world, workspace["id"], "start")
        assert [await _status_of_agent(world, token) for token in (TOKEN, fresh)] == [401, 200]
        assert await _current_token(world, workspace) == fresh
        await world.delete(f"/api/v2/workspaces/{workspace['id']}")
        await build(world, workspace["id"], "delete")
        assert await _status_of_agent(world, fresh) == 401


async def test_rotation_permissions() -> None:
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        _, stranger = await world.member()
        assert (await _rotate(world, workspace, token=stranger)).status_code == 404
        assert (await _rotate(world, workspace, token="")).status_code == 401
        assert (await _rotate(world, workspace, "other")).status_code == 404
        assert (await _rotate(world, {"id": str(uuid4())})).status_code == 404
        assert await _status_of_agent(world, TOKEN) == 200


async def test_query_matches_rule() -> None:
    """SQL decides which tokens an agent may use; compare it with the rule through four rotations."""
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        tokens, states = [TOKEN], [Generation(0, used=True)]
        for number, uses in enumerate((True, False, True, True), 1):
            tokens.append((await _rotate(world, workspace)).json()["agent_token"])
            states = [state for state in states if state.used] + [Generation(number, used=uses)]
            if uses:
                assert await _status_of_agent(world, tokens[-1]) == 200
            number_of = {token: index for index, token in enumerate(tokens)}
            valid = [
                index
                for token, index in number_of.items()
                if await world.ctx.db.read(agent_store.get_agent_by_token, UUID(token))
            ]
            assert tuple(valid) == good(states[1:]), states
            found = await world.ctx.db.read(agent_store.find_valid_tokens, [UUID(token) for token in tokens])
            assert sorted(number_of[str(token)] for token in found) == valid


async def test_sub_agents_end_with_parent_token() -> None:
    """The holder of an old token also knows the tokens of its dev containers' agents."""
    async with workspace_world(_answers()) as (world, _):
        workspace = await new_workspace(world, "machine")
        location = await world.ctx.db.read(agent_store.get_agent_by_token, UUID(TOKEN))
        assert location is not None
        async with connected_agent(AgentWorld(world, workspace, location.agent.id, TOKEN)) as old:
            request = pb.CreateSubAgentRequest(name="api", directory="/w")
            created = await old.call("CreateSubAgent", request, pb.CreateSubAgentResponse)
            child = str(UUID(bytes=created.agent.auth_token))
            for path in ("credentials", "rotate-token"):
                method = "GET" if path == "credentials" else "POST"
                url = f"/api/v2/workspaces/{workspace['id']}/external-agent/api/{path}"
                assert (await world.request(method, url)).status_code == 404, "its parent agent attaches it"
            fresh = (await _rotate(world, workspace)).json()["agent_token"]
            assert await _status_of_agent(world, child) == 200, "a rotation disconnects no agent"
            assert await _status_of_agent(world, fresh) == 200
            assert await _status_of_agent(world, child) == 401
            request.name = "other"
            for name, asked, reply in (
                ("CreateSubAgent", request, pb.CreateSubAgentResponse),
                ("CreateSubAgent", pb.CreateSubAgentRequest(id=created.agent.id), pb.CreateSubAgentResponse),
                ("ListSubAgents", pb.ListSubAgentsRequest(), pb.ListSubAgentsResponse),
                ("DeleteSubAgent", pb.DeleteSubAgentRequest(id=created.agent.id), pb.DeleteSubAgentResponse),
            ):
                with pytest.raises(RpcError, match="no longer valid"):
                    await old.call(name, asked, reply)
        async with connected_agent(AgentWorld(world, workspace, location.agent.id, fresh)) as new:
            (listed,) = (await new.call("ListSubAgents", pb.ListSubAgentsRequest(), pb.ListSubAgentsResponse)).agents
        assert listed.id == created.agent.id and listed.auth_token != created.agent.auth_token
        assert await _status_of_agent(world, str(UUID(bytes=listed.auth_token))) == 200


def _kept_machine(job: Any) -> dict[str, Any]:
    """The bundled template: its resource has no count, so it stays in the state of a stopped workspace."""
    agents = [agent(token=TOKEN)] if job.workspace_build.metadata.workspace_transition == provisioner.START else []
    return {"state": b"{}", "resources": [resource("main", "coder_external_agent", agents=agents)]}


async def test_stopped_workspace_stays_external(tmp_path: Path) -> None:
    async with workspace_world(Answers(import_=_import, build=_kept_machine)) as (world, _):
        workspace = await new_workspace(world, "machine")
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
        for transition in ("stop", "start", "stop"):
            built = await build(world, workspace["id"], transition)
            assert built["latest_build"]["has_external_agent"] is True, transition
            listed = await run_cli(["external-workspaces", "list"], home=tmp_path, env=env)
            assert listed.code == 0 and "machine" in listed.stdout, listed
        told = await run_cli(["external-workspaces", "agent-instructions", "machine"], home=tmp_path, env=env)
        assert told.code == 1 and "has no external agent" not in told.stderr
        assert 'workspace "machine" is stopped' in told.stderr and "coder start machine" in told.stderr


async def test_platform_without_program_is_reported(tmp_path: Path) -> None:
    """On stderr, as the page does; the line itself stays as recorded."""
    async with workspace_world(_answers(), site_dir=str(tmp_path)) as (world, _):
        await new_workspace(world, "machine")
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
        words = ["external-workspaces", "agent-instructions", "machine"]
        told = await run_cli(words, home=tmp_path, env=env)
        assert told.code == 0 and "curl -fsSL" in told.stdout
        assert "has no program for linux/amd64" in told.stderr and "build.py" in told.stderr
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/coder-linux-amd64").write_bytes(b"program")
        told = await run_cli(words, home=tmp_path, env=env)
        assert told.code == 0 and "has no program" not in told.stderr


async def test_connecting_to_unattached_machine_ends(tmp_path: Path) -> None:
    """Without a terminal, once the agent's time to connect has passed."""
    clock = FakeClock(datetime.now(UTC))
    async with workspace_world(_answers(), clock=clock) as (world, _):
        await new_workspace(world, "machine")
        clock.advance(600)
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
        for words in (["ssh", "machine", "true"], ["ping", "machine"], ["speedtest", "machine"]):
            told = await run_cli(words, home=tmp_path, env=env)
            assert told.code == 1, told
            assert "no machine is attached to admin/machine" in told.stderr
            assert "coder external-workspaces agent-instructions admin/machine" in told.stderr
            assert "https://" not in told.stderr
