"""Sub-agents at the server: created, recreated, given other tokens and deleted along with the dev containers here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio
import trio.testing

from coder.agent.devcontainers import sub_agents
from coder.agent.devcontainers.commands import CommandError
from coder.agent.devcontainers.sub_agents import SubAgent
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import agent_pb2
from tests.kit.agents.dev_container_workspace import ID, Place


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


async def test_unneeded_new_sub_agent_is_deleted(scene: Place) -> None:
    """The reply arrives after the container is to be rebuilt: its agent was dropped here and must be deleted there."""
    scene.template()
    answer = trio.Event()
    scene.server.answers.append(answer.wait)
    async with scene.running():
        with trio.fail_after(60):
            await scene.server.made.wait()
        (first,) = scene.server.agents
        assert (await scene.ask("POST", f"/devcontainers/{ID}/recreate")).status == 202
        for _ in range(3):
            await scene.table.refresh()  # other polls do not affect waiting callers
        answer.set()
        assert (await scene.only_one(str(first)))["agent"]["name"] == "api", "its name is free again"


async def _connection_lost() -> None:
    raise RpcClosed


@pytest.mark.parametrize("answer", [_connection_lost, trio.sleep_forever])
async def test_unanswered_creation_is_deleted(
    answer: Callable[[], Awaitable[None]], scene: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sub_agents, "CREATE_TIMEOUT", 0.1)
    scene.template()
    scene.server.answers.append(answer)
    async with scene.running():
        with trio.fail_after(60):
            await scene.server.made.wait()
        first = scene.server.created[0]
        await scene.only_one(str(first))
        assert first not in scene.server.agents


async def test_late_creation_is_deleted(scene: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sub_agents, "SETTLE_TIME", 3600.0)
    scene.template()
    scene.server.answers.append(_connection_lost)
    async with scene.running():
        await scene.one(lambda item: "agent" in item)
        await scene.only_one()
        scene.server.have("late")
        await scene.only_one()


async def test_foreign_sub_agents_are_kept(scene: Place) -> None:
    scene.template()
    async with scene.running():
        await scene.one(lambda item: "agent" in item)
        await scene.settled(lambda: not scene.table.calls.is_stale)
        others = scene.server.have("of a second process")
        await scene.table._reconciler.reconcile()
        assert others in scene.server.agents


async def test_deleted_sub_agent_is_recreated(scene: Place) -> None:
    scene.template()
    async with scene.running():
        before, ident = await scene.with_agent()
        scene.server.agents.clear()
        after = await scene.only_one(before["agent"]["id"])
        await scene.settled(lambda: scene.token(after) in scene.given(ident))


async def test_changed_token_is_adopted(scene: Place) -> None:
    scene.template()
    async with scene.running():
        before, ident = await scene.with_agent()
        scene.server.tokens[UUID(before["agent"]["id"])] = uuid4()
        await scene.settled(lambda: scene.token(before) in scene.given(ident))
        assert (await scene.only_one())["agent"] == before["agent"]


async def test_deleting_missing_succeeds(scene: Place) -> None:
    scene.template()
    async with scene.running():
        result = await scene.one(lambda item: "agent" in item)
        await scene.table.calls.delete(uuid4())
        assert [str(ident) for ident in scene.server.agents] == [result["agent"]["id"]]


async def test_taken_name_tries_next(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, asked = sub_agents.SubAgentClient(), []

    async def answer(name: str, request: Any, _reply: Any) -> Any:
        asked.append(request.name)
        if request.name != "third":
            raise RpcError(0, f'workspace agent name "{request.name}" already exists in this workspace')
        made = agent_pb2.SubAgent(name=request.name, id=bytes(16), auth_token=bytes(16))
        fault = agent_pb2.CreateSubAgentResponse.AppCreationError(index=0, field="slug", error="no slug")
        return agent_pb2.CreateSubAgentResponse(agent=made, app_creation_errors=[fault])

    monkeypatch.setattr(calls, "_session", SimpleNamespace(call=answer))
    request = agent_pb2.CreateSubAgentRequest(apps=[agent_pb2.CreateSubAgentRequest.App(slug="X")])
    made, faults = await calls.create(request, ["first", "second", "third", "fourth"])
    assert (made.name, asked, faults) == ("third", ["first", "second", "third"], ["application X: no slug"])
    with pytest.raises(CommandError, match="already exists"):
        await calls.create(request, ["first"])


@pytest.mark.parametrize(("ident", "token"), [(bytes(15), bytes(16)), (bytes(16), b"")])
def test_invalid_sub_agent_is_rejected(ident: bytes, token: bytes) -> None:
    with pytest.raises(CommandError, match="without a valid id"):
        SubAgent.of(agent_pb2.SubAgent(name="a", id=ident, auth_token=token))
