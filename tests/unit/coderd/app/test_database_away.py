"""The server during an outage of its database: responses, messages, stop, and recovery."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio
from sqlalchemy import text

from coder.base.clock import FakeClock
from coder.base.errors import CoderError
from coder.base.log import Level
from coder.base.log import also as log_to
from coder.base.secret import Secret
from coder.coderd import app
from coder.coderd.app import open_server
from coder.coderd.config.settings import ServerConfig
from coder.coderd.loops import last_use
from coder.coderd.store.engine import (
    postgres,
    postgres_cluster,
    postgres_process,
    postgres_programs,
    postgres_supervisor,
)
from coder.coderd.store.engine.database import Tx
from coder.net.dial import DialPolicy
from coder.rpc.proto import agent_pb2
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import eventually, start_workspace
from tests.kit.api.http_clients import http_client
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import World, running_on

SOURCE = UUID("3b579bf4-1ed8-4b99-87a8-e9a1e3410410")
"""The log source that every agent has."""


@contextlib.asynccontextmanager
async def server(folder: Path, url: str = "", clock: Any = None) -> AsyncIterator[World]:
    config = ServerConfig(
        data_dir=folder,
        http_address="127.0.0.1:0",
        postgres_url=Secret(url),
        provisioner_daemons=0,
        dangerous_disable_rate_limits=True,
        derp_server_stun_addresses=("disable",),
    )
    async with open_server(config, clock=clock) as running, http_client(running.url) as client:
        yield World(running, client)


@pytest.fixture
async def mortal(open_path: Path) -> AsyncIterator[tuple[str, postgres_process.RunningPostgres]]:
    """Yield a PostgreSQL without a supervisor."""
    cluster = postgres_cluster.cluster_of(open_path / "external", postgres_cluster.find_account())
    programs = postgres_programs.find_programs(cluster, "")
    await postgres._initialise(cluster, programs, durable=False)
    running = await postgres_process.start(cluster, programs, durable=True)
    try:
        yield cluster.url, running
    finally:
        await postgres_process.stop(running)


def kill(running: postgres_process.RunningPostgres) -> None:
    assert running.process is not None
    os.kill(running.pid, signal.SIGKILL)
    running.process.wait()


async def refusal_of(world: World, path: str) -> Any:
    """Return the first answer that is not 200: a backend may outlive its killed postmaster by a statement."""

    async def refusal() -> Any:
        answer = await world.get(path)
        return answer if answer.status_code != 200 else None

    return await eventually(refusal)


async def end_for_balancers(world: World, clock: FakeClock) -> Any:
    """Let a killed database count as away; return the refusal of `/healthz`.

    The postmaster is dead, but a backend may still answer a loop's statement, and each such answer ends an outage.
    """

    async def refusal() -> Any:
        assert (await world.get("/api/v2/users")).status_code in (200, 503)
        clock.advance(11)
        health = await world.get("/healthz")
        return health if health.status_code != 200 else None

    return await eventually(refusal)


async def test_outage_of_database(mortal: tuple[str, postgres_process.RunningPostgres], open_path: Path) -> None:
    url, running = mortal
    clock = FakeClock()
    async with server(open_path, url, clock) as world:
        await world.first_user()
        assert (await world.get("/healthz")).text == "OK"
        kill(running)
        refused = await refusal_of(world, "/api/v2/users")
        assert (refused.status_code, refused.json()["message"]) == (503, "The database does not answer.")
        assert (await world.get("/healthz")).status_code == 200, "a restart takes that long, too"
        health = await end_for_balancers(world, clock)
        assert (health.status_code, health.text) == (503, "the database does not answer")
        assert (await world.get("/latency-check")).status_code == 200, "the process lives"
    # The block ends without an error: a clean stop needs no database.


async def start_again(folder: Path, running: postgres_process.RunningPostgres) -> None:
    cluster = postgres_cluster.cluster_of(folder / "external", postgres_cluster.find_account())
    programs = postgres_programs.find_programs(cluster, "")
    again = await postgres_process.start(cluster, programs, durable=True)
    running.pid, running.process = again.pid, again.process


async def test_outage_keeps_agent_session(
    mortal: tuple[str, postgres_process.RunningPostgres], open_path: Path, tmp_path: Path
) -> None:
    """The agent repeats what the server could not store, and its connection lasts."""
    url, running = mortal
    async with server(open_path, url) as world:
        await world.first_user()
        scene = await start_workspace(world)
        disconnects = f"/api/v2/workspaceagents/{scene.agent_id}/disconnects"
        refused = trio.Event()

        def note(_level: Level, _at: datetime, _name: str, message: str, _fields: dict[str, Any]) -> None:
            if message == "the database does not answer":
                refused.set()

        async with running_agent(scene, DialPolicy(world.url), tmp_path / "agent") as agent:
            with log_to(note):
                kill(running)
                agent.logs.add(SOURCE.bytes, "said during the outage", agent_pb2.Log.INFO)
                with trio.fail_after(60):
                    await refused.wait()
            assert agent.logs
            await start_again(open_path, running)
            with trio.fail_after(60):
                await agent.logs.wait_sent()

            async def is_connected() -> bool:
                return bool((await scene.agent())["status"] == "connected")

            await eventually(is_connected)
            assert (await world.get(disconnects)).json() == []


async def test_external_database_reconnects(
    mortal: tuple[str, postgres_process.RunningPostgres], open_path: Path
) -> None:
    url, running = mortal
    clock = FakeClock()
    async with server(open_path, url, clock) as world:
        await world.first_user()
        kill(running)
        assert (await end_for_balancers(world, clock)).status_code == 503
        await start_again(open_path, running)

        async def is_healthy() -> bool:
            return (await world.get("/healthz")).status_code == 200

        await eventually(is_healthy)
        assert (await world.get("/api/v2/users/me")).json()["username"] == "admin"


async def test_a_killed_builtin_database_returns(open_path: Path) -> None:
    """Acknowledged writes survive, and a build's watchers receive changes again."""
    async with server(open_path) as world:
        await world.first_user()
        created = await world.post("/api/v2/users/me/secrets", {"name": "a", "value": "v", "env_name": "A"})
        assert created.status_code == 201
        pid_file = world.ctx.config.data_path / "postgres/data/postmaster.pid"
        os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)

        async def health_status() -> Any:
            return (await world.get("/api/v2/users/me/secrets")).json()

        async def is_reconnected() -> bool:
            return isinstance(await health_status(), list)

        async def listens() -> bool:
            return world.ctx.db.is_listening

        await eventually(is_reconnected)
        assert [secret["name"] for secret in await health_status()] == ["a"]
        await eventually(listens)


async def test_lost_database_ends_server(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the output of `coder server` before it exits with status 1."""
    monkeypatch.setattr(postgres_supervisor, "TRIES", 1)
    monkeypatch.setattr(postgres_supervisor, "_LEAVE_TIMEOUT", 0.0)
    with trio.fail_after(60), pytest.raises(CoderError, match="PostgreSQL ended \\(killed by SIGKILL\\) and 1"):
        async with server(open_path) as world:
            data = world.ctx.config.data_path / "postgres/data"
            pid = int((data / "postmaster.pid").read_text().splitlines()[0])
            (data / "PG_VERSION").write_text("broken\n")
            os.kill(pid, signal.SIGKILL)
            await trio.sleep_forever()


async def test_refused_last_writes_fail_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server stops in order although the database refuses its last writes, not only without a database."""
    warnings: list[str] = []

    def note(_level: Level, _at: datetime, _name: str, message: str, _fields: object) -> None:
        warnings.append(message)

    monkeypatch.setattr(app, "LOOPS", (last_use.run,))
    async with fresh_database() as url:
        with log_to(note):
            async with running_on(url) as world:
                world.ctx.services.last_use.note(uuid4(), world.ctx.clock.now())
                await world.ctx.db.run(_refuse, "DELETE ON replicas")
                await world.ctx.db.run(_refuse, "UPDATE ON workspaces")
    assert "the goodbye to other replicas could not be sent" in warnings
    assert "the last uses of workspaces were not written" in warnings


async def _refuse(tx: Tx, what: str) -> None:
    """Let the database refuse these statements, for no reason that time removes."""
    body = "$$ BEGIN RAISE EXCEPTION 'not here'; END $$"
    await tx.execute(text(f"CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS {body}"))
    await tx.execute(text(f"CREATE TRIGGER refuse BEFORE {what} FOR EACH STATEMENT EXECUTE FUNCTION refuse()"))
