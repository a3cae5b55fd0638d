"""Part `coordinator`: from an agent's change of its node to the peer that has a tunnel to it, at 100 changes a second.

100 agents change an endpoint of their node once a second, evenly spread; a client each has a tunnel to one of them.
Both ends are in one process, so that one clock measures; its own delays count.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import trio
from sqlalchemy import select

from coder.base.secret import Secret
from coder.coderd.store.engine import postgres
from coder.coderd.store.engine.database import Tx, open_database
from coder.coderd.store.tables.agents import workspace_agents
from coder.domain.agents.reporting import API_VERSION
from coder.mesh.keys import PrivateKey
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import Session, open_session
from coder.tailnet.addresses import agent_address, node_id, random_address, random_node_id
from coder.tailnet.controller import COORDINATE
from tests.bench._full import Emit, Options
from tests.bench._full_place import p99, server_processes, spent
from tests.bench._population import populate
from tests.bench._workspace import program
from tests.bench.api import TEMPLATES, USERS, Scene, _first_user, _organization, _owner, _server
from tests.bench.first import Place, note

PAIRS = 100
"""Agents, and clients; each agent changes once a second."""
MINUTES = 1.0
LATE = 5.0
"""Seconds after the last change within which it must have arrived."""
_Request = tailnet_pb2.CoordinateRequest


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    trio.run(_run, options, folder, emit)


@dataclass
class Changes:
    """Changes under way, and what those that arrived took."""

    sent: dict[UUID, dict[int, float]] = field(default_factory=dict)
    """Time of each change by agent and number."""
    times: list[float] = field(default_factory=list)
    count: int = 0

    def arrived(self, agent: UUID, number: int) -> None:
        """A peer has this change, and with it the earlier ones of that agent."""
        now, pending = time.monotonic(), self.sent.get(agent, {})
        for each in [one for one in pending if one <= number]:
            self.times.append((now - pending.pop(each)) * 1000)


async def _run(options: Options, folder: Path, emit: Emit) -> None:
    place = Place(program(folder), folder)
    place.env["CODER_PROCESSES"] = str(options.processes)
    pairs = options.count(PAIRS, 4)
    async with (
        postgres.run_postgres(folder / "database") as url,
        open_database(url) as db,
        _server(place, [str(place.binary)], url) as process,
    ):
        scene = Scene(place, process.pid, 0, db, url, folder / "postgres.log")
        scene.token = await _first_user(scene)
        made = await populate(
            db,
            await _organization(scene),
            await _owner(scene),
            workspace_count=pairs,
            user_count=USERS,
            template_count=TEMPLATES,
        )
        policy, changes = DialPolicy(place.url, proxies={}), Changes()
        seconds = max(options.seconds(MINUTES), 5)
        note(f"{pairs} agents and clients …")
        async with trio.open_nursery() as nursery:
            links = []
            for agent, token in await db.read(_tokens, made.agent_ids):
                links.append(await nursery.start(_agent, policy.with_token(Secret(token)), agent))
                await nursery.start(_client, policy.with_token(Secret(scene.token)), agent, changes)
            await trio.sleep(5)
            before = spent(server_processes(process.pid))
            note(f"{pairs} changes a second for {seconds:.0f} s …")
            await _change(links, changes, seconds)
            used = spent(server_processes(process.pid)) - before
            with trio.move_on_after(LATE):
                while any(changes.sent.values()):
                    await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
        name = f"change of a node to its peer, {changes.count / seconds:.0f} changes a second"
        emit(f"{name}: median", statistics.median(changes.times), "ms", None)
        emit(f"{name}: p99", p99(changes.times), "ms", 500)
        emit(f"{name}: changes that did not arrive", sum(map(len, changes.sent.values())), "changes", 0)
        emit(f"{name}: server CPU of a change", used / changes.count, "ms", None)


async def _tokens(tx: Tx, agents: Sequence[UUID]) -> list[tuple[UUID, str]]:
    query = select(workspace_agents.c.id, workspace_agents.c.auth_token).where(workspace_agents.c.id.in_(agents))
    return [(agent, str(token)) for agent, token in (await tx.execute(query)).all()]


async def _change(links: list[Any], changes: Changes, seconds: float) -> None:
    """Change one agent after the other, each once a second."""
    began = trio.current_time()
    for number in range(1, round(seconds) + 1):
        for place, (agent, change) in enumerate(links):
            await trio.sleep_until(began + number - 1 + place / len(links))
            changes.sent.setdefault(agent, {})[number] = time.monotonic()
            changes.count += 1
            await change(number)


@contextlib.asynccontextmanager
async def _session(policy: DialPolicy, path: str) -> Any:
    socket = await connect_websocket(policy, path)
    async with open_session(socket, "client") as session:
        yield session


async def _agent(policy: DialPolicy, agent: UUID, *, task_status: trio.TaskStatus[Any]) -> None:
    """Start with the agent and the function that sends a change of its node."""
    key, disco = PrivateKey.generate(os.urandom), PrivateKey.generate(os.urandom)

    def node(number: int) -> _Request:
        prefix = f"{agent_address(agent)}/128"
        found = tailnet_pb2.Node(
            id=node_id(agent),
            key=key.public.binary,
            disco=disco.public.disco_text,
            preferred_derp=999,
            addresses=[prefix],
            allowed_ips=[prefix],
            endpoints=[f"198.51.100.7:{1024 + number}"],
        )
        found.as_of.FromDatetime(datetime.now(UTC))
        return _Request(update_self=_Request.UpdateSelf(node=found))

    path = f"/api/v2/workspaceagents/me/rpc?version={API_VERSION}&role=agent"
    async with _session(policy, path) as session, _coordinate(session) as stream:
        await stream.send(node(0))
        task_status.started((agent, lambda number: stream.send(node(number))))
        async for response in stream:
            if response.error:
                raise RuntimeError(response.error)


async def _client(policy: DialPolicy, agent: UUID, changes: Changes, *, task_status: trio.TaskStatus[None]) -> None:
    """Start when the tunnel's other end has arrived."""
    key, disco = PrivateKey.generate(os.urandom), PrivateKey.generate(os.urandom)
    prefix, is_started = f"{random_address()}/128", False
    node = tailnet_pb2.Node(
        id=random_node_id(),
        key=key.public.binary,
        disco=disco.public.disco_text,
        preferred_derp=999,
        addresses=[prefix],
        allowed_ips=[prefix],
    )
    node.as_of.FromDatetime(datetime.now(UTC))
    async with _session(policy, "/api/v2/tailnet?version=2.0") as session, _coordinate(session) as stream:
        await stream.send(_Request(update_self=_Request.UpdateSelf(node=node)))
        await stream.send(_Request(add_tunnel=_Request.Tunnel(id=agent.bytes)))
        async for response in stream:
            if response.error:
                raise RuntimeError(response.error)
            for update in response.peer_updates:
                if update.id == agent.bytes and update.node.endpoints:
                    changes.arrived(agent, int(update.node.endpoints[0].rpartition(":")[2]) - 1024)
                    if not is_started:
                        is_started = True
                        task_status.started()


def _coordinate(session: Session) -> Any:
    return session.open_stream(COORDINATE, _Request, tailnet_pb2.CoordinateResponse)
