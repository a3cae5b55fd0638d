"""The agents of dev containers at the server: made, missed, given other tokens and removed, as they are here."""

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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


async def test_unneeded_new_sub_agent_is_deleted(place: Place) -> None:
    """The answer comes after the container is to be built anew: its agent had gone from here, and stayed there."""
    place.template()
    answer = trio.Event()
    place.server.answers.append(answer.wait)
    async with place.running():
        with trio.fail_after(60):
            await place.server.made.wait()
        (first,) = place.server.agents
        assert (await place.ask("POST", f"/devcontainers/{ID}/recreate")).status == 202
        for _ in range(3):
            await place.table.refresh()  # whoever looks meanwhile takes nothing from whoever waits
        answer.set()
        assert (await place.only_one(str(first)))["agent"]["name"] == "api", "its name is free again"


async def _lost() -> None:
    raise RpcClosed


@pytest.mark.parametrize("answer", [_lost, trio.sleep_forever])
async def test_unanswered_creation_is_deleted(
    answer: Callable[[], Awaitable[None]], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sub_agents, "CREATE_TIMEOUT", 0.1)
    place.template()
    place.server.answers.append(answer)
    async with place.running():
        with trio.fail_after(60):
            await place.server.made.wait()
        first = place.server.created[0]
        await place.only_one(str(first))
        assert first not in place.server.agents


async def test_late_creation_is_deleted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sub_agents, "SETTLE_TIME", 3600.0)
    place.template()
    place.server.answers.append(_lost)
    async with place.running():
        await place.one(lambda item: "agent" in item)
        await place.only_one()
        place.server.have("late")
        await place.only_one()


async def test_foreign_sub_agents_are_kept(place: Place) -> None:
    place.template()
    async with place.running():
        await place.one(lambda item: "agent" in item)
        await place.settled(lambda: not place.table.calls.is_stale)
        others = place.server.have("of a second process")
        await place.table._reconciler.reconcile()
        assert others in place.server.agents


async def test_deleted_sub_agent_is_recreated(place: Place) -> None:
    place.template()
    async with place.running():
        before, ident = await place.with_agent()
        place.server.agents.clear()
        after = await place.only_one(before["agent"]["id"])
        await place.settled(lambda: place.token(after) in place.given(ident))


async def test_changed_token_is_adopted(place: Place) -> None:
    place.template()
    async with place.running():
        before, ident = await place.with_agent()
        place.server.tokens[UUID(before["agent"]["id"])] = uuid4()
        await place.settled(lambda: place.token(before) in place.given(ident))
        assert (await place.only_one())["agent"] == before["agent"]


async def test_deleting_missing_succeeds(place: Place) -> None:
    place.template()
    async with place.running():
        result = await place.one(lambda item: "agent" in item)
        await place.table.calls.delete(uuid4())
        assert [str(ident) for ident in place.server.agents] == [result["agent"]["id"]]


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
