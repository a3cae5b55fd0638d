"""Commands that meet an active build: the same build is shared, and a different one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from tests.kit.programs.command_line import Result, run_cli
from tests.kit.provisioners.scripted_provisioner import working_daemon
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import build, new_workspace, settled, without_daemon, workspace_world


async def command(world: World, home: Path, *words: str) -> Result:
    return await run_cli(list(words), home=home, env={"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token})


async def queue(world: World, workspace: Any, transition: str) -> Any:
    answer = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": transition})
    assert answer.status_code == 201
    return answer.json()


async def watched(world: World, job_id: str, results: list[Result]) -> None:
    """Wait until a command follows a job: a later command would find its build finished, and begin another."""
    while UUID(job_id) not in world.ctx.services.api.job_changes._watchers:
        assert not results, results
        await trio.sleep(0.01)


@pytest.mark.parametrize("transition", ["start", "stop", "delete"])
async def test_same_build_is_shared(transition: str, tmp_path: Path) -> None:
    async with workspace_world() as (world, answers):
        workspace = await new_workspace(world, "ws")
        if transition == "start":
            workspace = await build(world, workspace["id"], "stop")
        before = workspace["latest_build"]["build_number"]
        await without_daemon(world)
        queued = await queue(world, workspace, transition)
        results: list[Result] = []

        async def run() -> None:
            results.append(await command(world, tmp_path, transition, "ws", "-y"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await watched(world, queued["job"]["id"], results)
            async with working_daemon(world, answers):
                latest = (await settled(world, workspace["id"]))["latest_build"]
        assert results[0].code == 0, results
        assert latest["build_number"] == before + 1 and latest["transition"] == transition


@pytest.mark.parametrize(
    ("active", "words"),
    [("start", ["restart", "ws", "-y"]), ("stop", ["start", "ws", "-y"]), ("stop", ["delete", "ws", "-y"])],
)
async def test_different_build_is_named(active: str, words: list[str], tmp_path: Path) -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "ws")
        if active == "start":
            await build(world, workspace["id"], "stop")
        await without_daemon(world)
        queued = await queue(world, workspace, active)
        result = await command(world, tmp_path, *words)
        assert result.code == 1 and "A workspace build is already active." in result.stderr
        assert f"Build {queued['build_number']} of admin/ws ({active}) is pending." in result.stderr
        assert f"coder provisioner jobs cancel {queued['job']['id']}" in result.stderr
