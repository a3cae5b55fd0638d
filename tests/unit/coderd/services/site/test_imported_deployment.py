"""A server on an imported database: people, keys and agents of the original go on as before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coder.net.policy import DialPolicy
from coder.rpc.proto import agent_pb2
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually
from tests.kit.original.database import original_database
from tests.kit.original.deployment import (
    AGENT_TOKEN,
    DEPLOYMENT_ID,
    EMAIL,
    KEY_ID,
    KEY_SECRET,
    PASSWORD,
    STATE,
)
from tests.kit.original.importing import run_import
from tests.kit.original.rows import ident
from tests.kit.programs.command_line import run_cli
from tests.kit.provisioners.scripted_provisioner import Answers, working_daemon
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import World, running_on

KEY = f"{KEY_ID}-{KEY_SECRET}"
WORKSPACE = f"/api/v2/workspaces/{ident('workspaces', 0)}"


@asynccontextmanager
async def imported_world() -> AsyncIterator[World]:
    """A server on an import; its client has the key of the original's command line."""
    async with original_database() as source, fresh_database(migrated=False) as target:
        await run_import(source, target)
        async with running_on(target) as world:
            world.token = KEY
            yield world


async def test_original_workspace_goes_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with imported_world() as world:
        assert str(world.ctx.deployment_id) == DEPLOYMENT_ID
        assert await world.login(EMAIL.upper(), PASSWORD)
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": KEY}
        listed = await run_cli(["list", "--output", "json"], home=tmp_path, env=env)
        assert listed.code == 0, listed.stderr
        assert '"name": "Dev"' in listed.stdout
        agent_id = ident("workspace_agents", 0)
        view = AgentWorld(world, (await world.get(WORKSPACE)).json(), agent_id, str(AGENT_TOKEN))
        async with connected_agent(view, version="2.8") as agent:
            manifest = await agent.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
            assert manifest.workspace_name == "Dev"
            assert manifest.environment_variables["GREETING"] == "hi"
            assert [script.script for script in manifest.scripts] == ["echo hello"]

        async with running_agent(view, DialPolicy(world.url), tmp_path / "agent"):
            shell = await run_cli(["ssh", "Dev.main", "echo hel''lo"], home=tmp_path, env=env)
            assert shell.code == 0, shell.stderr
            assert capfd.readouterr().out == "hello\n"


async def test_build_gets_imported_state() -> None:
    states: list[bytes] = []

    def build(job: Any) -> dict[str, Any]:
        states.append(job.workspace_build.state)
        return {"state": b"{}"}

    async with imported_world() as world:
        started = await world.post(f"{WORKSPACE}/builds", {"transition": "stop"})
        assert started.status_code == 201, started.text
        async with working_daemon(world, Answers(build=build)):

            async def stopped() -> bool:
                return bool((await world.get(WORKSPACE)).json()["latest_build"]["status"] == "stopped")

            await eventually(stopped)
    assert states == [STATE]
