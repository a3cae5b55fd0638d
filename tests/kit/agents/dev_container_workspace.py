"""A workspace with dev containers: an engine, a server that creates sub-agents, and the table between them.

place = Place(tmp_path, monkeypatch)
place.template()
async with place.running():
    await place.one(lambda one: "agent" in one)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio
import trio.testing

from coder.agent.config import DevcontainerSettings
from coder.agent.devcontainers import sub_agent_reconciler, sub_agent_supervisor, sub_agents, table
from coder.agent.devcontainers.table import Devcontainers
from coder.agent.network.http_api import HttpApi
from coder.agent.network.http_messages import HttpReply, HttpRequest
from coder.agent.state import AgentState
from coder.agent.upgrade.handover import KeptContainer
from coder.agent.workspace.environment import find_identity
from coder.agent.workspace.logs import LogQueue
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2
from tests.kit.agents.container_engine import FakeEngine

INNER = """#!/bin/sh
# What an agent of ours would be: notes what it was given, says something, and waits for its end.
trap 'echo stopped >> "$HOME/given"; exit 0' TERM
env | grep ^CODER_AGENT_ > "$HOME/given"
echo "it listens"
if [ -e "$HOME/../fails" ]; then echo "refused by the server" >&2; exit 3; fi
while :; do sleep 0.05; done
"""
ID = UUID("11111111-2222-4333-8444-555555555555")


class SubAgentServer:
    """The other end of the connection, as far as it is asked about sub-agents."""

    def __init__(self) -> None:
        self.agents: dict[UUID, agent_pb2.CreateSubAgentRequest] = {}
        self.created: list[UUID] = []
        "By CreateSubAgent, with those that have gone since."
        self.tokens: dict[UUID, UUID] = {}
        self.presets: set[UUID] = set()
        self.taken: set[str] = set()
        self.made = trio.Event()
        "One was made, and its answer is on its way."
        self.answers: list[Callable[[], Awaitable[None]]] = []
        "What becomes of the next answers to CreateSubAgent, instead of arriving at once."

    def have(self, name: str, ident: UUID | None = None) -> UUID:
        """One that was there before the agent began."""
        found = ident or uuid4()
        self.agents[found], self.tokens[found] = agent_pb2.CreateSubAgentRequest(name=name), uuid4()
        return found

    async def call(self, name: str, request: Any, _reply: Any) -> Any:
        await trio.lowlevel.checkpoint()
        copy = type(request).FromString(request.SerializeToString())
        return await getattr(self, f"_{name.rpartition('/')[2]}")(copy)

    async def _CreateSubAgent(self, request: Any) -> Any:
        if request.name in self.taken | {one.name for one in self.agents.values()} and not request.HasField("id"):
            raise RpcError(0, f'workspace agent name "{request.name}" already exists in this workspace')
        ident = UUID(bytes=request.id) if request.HasField("id") else self.have(request.name)
        if request.HasField("id") and ident not in self.presets:
            raise RpcError(0, "subagent does not belong to this parent agent")
        self.agents[ident] = request
        self.created.append(ident)
        self.tokens.setdefault(ident, uuid4())
        self.made.set()
        if self.answers:
            await self.answers.pop(0)()
        return agent_pb2.CreateSubAgentResponse(agent=self._message(ident))

    async def _DeleteSubAgent(self, request: Any) -> Any:
        if self.agents.pop(UUID(bytes=request.id), None) is None:
            raise RpcError(0, "subagent does not belong to this parent agent")
        return agent_pb2.DeleteSubAgentResponse()

    async def _ListSubAgents(self, _request: Any) -> Any:
        return agent_pb2.ListSubAgentsResponse(agents=[self._message(ident) for ident in self.agents])

    def _message(self, ident: UUID) -> Any:
        return agent_pb2.SubAgent(name=self.agents[ident].name, id=ident.bytes, auth_token=self.tokens[ident].bytes)


class Place:
    """A workspace with an engine, its folder `work`, and the table under test."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.engine, self.work, self.server = FakeEngine(tmp_path, monkeypatch), tmp_path / "work", SubAgentServer()
        self.work.mkdir()
        monkeypatch.setattr(sub_agent_supervisor, "FIRST_DELAY", 0.01)
        monkeypatch.setattr(table, "INTERVAL", 0.05)
        monkeypatch.setattr(table, "FRESHNESS", -1.0)
        monkeypatch.setattr(sub_agent_reconciler, "INTERVAL", 0.05)
        monkeypatch.setattr(sub_agents, "SETTLE_TIME", 0.0)
        program = tmp_path / "coder"
        program.write_text(INNER)
        program.chmod(0o755)
        self.state = AgentState(find_identity(), "parents-token", "http://server", str(program))
        self.logs = LogQueue(lambda: datetime.now(UTC))
        self.table = Devcontainers(self.state, self.logs, DevcontainerSettings(**settings))
        self.state.directory = self.work
        self.state.containers = self.table
        self.manifest = agent_pb2.Manifest(agent_name="main")
        self.state.manifest = self.manifest

    def declare(self, name: str, **more: Any) -> Path:
        folder = self.work / name
        self.manifest.devcontainers.add(id=ID.bytes, name=name, workspace_folder=str(folder), **more)
        return folder

    def template(self, **more: Any) -> None:
        """One that declares the dev container `api`, with the command that builds it."""
        self.engine.add_builder()
        self.engine.describe(self.declare("api", **more))

    def preset(self) -> UUID:
        """An agent that the template has made."""
        ident = self.server.have("preset")
        self.server.presets.add(ident)
        return ident

    @asynccontextmanager
    async def running(self, kept: list[KeptContainer] | None = None) -> AsyncIterator[bool]:
        """The table, started; whether everything could be built."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.table.run)
            with self.table.calls.using(self.server):  # type: ignore[arg-type]
                yield await self.table.start(kept)
            nursery.cancel_scope.cancel()

    async def one(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The only dev container, once it is as wanted."""
        with trio.fail_after(60):
            while True:
                change = self.table.next_change()
                found = self.containers()
                assert len(found) <= 1
                if found and fits(found[0]):
                    return dict(found[0])
                await change.wait()

    def containers(self) -> list[dict[str, Any]]:
        listed: Any = self.table.cached_listing()["devcontainers"]
        return list(listed)

    def lines(self) -> list[str]:
        return [entry.output for _, entry in self.logs._lines]

    async def ask(self, method: str, path: str) -> HttpReply:
        return await HttpApi(self.state)._answer(HttpRequest(method, f"/api/v0/containers{path}", {}, b""))

    def given(self, ident: str) -> list[str]:
        path = self.engine.containers / ident / "home" / "given"
        return path.read_text().splitlines() if path.exists() else []

    async def with_agent(self) -> tuple[dict[str, Any], str]:
        """The only dev container, once an agent has begun in its container; and that container's id."""
        found = await self.one(lambda one: "agent" in one)
        ident: str = found["container"]["id"]
        await self.begun(ident)
        return found, ident

    async def begun(self, ident: str) -> list[str]:
        """What the agent in a container was given, once it runs."""
        with trio.fail_after(60):
            while len(found := self.given(ident)) < 2:
                await trio.sleep(0.01)
        return found

    async def settled(self, wanted: Callable[[], bool]) -> None:
        with trio.fail_after(60):
            while not wanted():
                await trio.sleep(0.01)

    async def only_one(self, but: str = "") -> dict[str, Any]:
        """Once the server has one agent, another than `but`, and the dev container that one."""

        def same() -> bool:
            (one,) = self.containers()
            return [str(ident) for ident in self.server.agents] == [one.get("agent", {}).get("id")] != [but]

        await self.settled(same)
        (one,) = self.containers()
        return dict(one)

    def token(self, one: dict[str, Any]) -> str:
        """What the server gave the dev container's agent, as the agent is told it."""
        return f"CODER_AGENT_TOKEN={self.server.tokens[UUID(one['agent']['id'])]}"
