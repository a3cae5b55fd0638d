"""`coder templates rollout`, and the version that `coder update` brings during a rollout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from coder.domain.templates.rollouts import bucket_of
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, new_version, resource
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world


async def test_rollout_by_commands(tmp_path: Path) -> None:
    """Start, status, `coder update` of a member of the stage, stop, resume, rollback, and the end."""
    answers = Answers(import_=lambda job: {"start_resources": [resource("box", agents=[agent()])]})
    async with workspace_world(answers) as (world, _):
        workspace = await new_workspace(world, "dev")
        old = workspace["latest_build"]["template_version_id"]
        version = await new_version(world, template_id=world.extra["template"]["id"], name="v2")
        await ended(world, f"/api/v2/templateversions/{version['id']}")

        async def run(*words: str, stdin: str = "", code: int = 0) -> Result:
            env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
            result = await run_cli(list(words), home=tmp_path, env=env, stdin=stdin)
            assert result.code == code, (words, result.stdout, result.stderr)
            return result

        async def rollout(*words: str, **rest: Any) -> Result:
            return await run("templates", "rollout", *words, **rest)

        assert "has had no rollout" in (await rollout("status", "full")).stderr
        assert "no rollout that is running or stopped" in (await rollout("next", "full", code=1)).stderr
        assert (
            "invalid stage: x"
            in (await rollout("start", "full", "--template-version", "v2", "--stages", "x,100", code=1)).stderr
        )
        words = ("--template-version", "v2", "--stages", "90,99,100", "-o", "json")
        started = json.loads((await rollout("start", "full", *words)).stdout)
        while bucket_of(UUID(started["id"]), UUID(workspace["id"])) >= 90:  # until the workspace is in the first stage
            await rollout("rollback", "full")
            started = json.loads((await rollout("start", "full", *words)).stdout)
        assert (started["percent"], started["status"], started["failure_percent"]) == (90, "running", 20)
        await run("update", "dev")
        assert await _version_of(world, workspace) == version["id"]
        assert "up-to-date" in (await run("update", "dev")).stdout
        shown = (await rollout("status", "full", "--column", "version,status,stage,updated,failure rate")).stdout
        assert [line.split() for line in shown.splitlines()[:2]] == [
            ["VERSION", "STATUS", "STAGE", "UPDATED", "FAILURE", "RATE"],
            ["v2", "running", "90%", "1", "0%"],
        ]
        assert 'The rollout of version "v2" is stopped at 90 percent.' in (await rollout("stop", "full")).stdout
        assert (
            "The rollout is stopped. Go on to the next stage?"
            in (await rollout("next", "full", stdin="n\n", code=1)).stdout
        )
        assert "running at 90 percent" in (await rollout("resume", "full")).stdout
        assert "running at 99 percent" in (await rollout("next", "full")).stdout
        await rollout("next", "full", stdin="no\n", code=1)
        assert "rolled back at 99 percent" in (await rollout("rollback", "full")).stdout
        assert (await rollout("status", "full", "-c", "updated")).stdout.splitlines()[1] == "-"
        await run("update", "dev")
        assert await _version_of(world, workspace) == old
        await rollout("start", "full", "--template-version", "v2", "--stages", "98,99,100")
        first = (await world.get(f"/api/v2/templateversions/{old}")).json()["name"]
        promote = ("templates", "versions", "promote", "-t", "full", "--template-version")
        assert "rollout" not in (await run(*promote, first)).stderr, "the active version again ends nothing"
        promoted = await run(*promote, "v2")
        assert 'This ended the rollout of version "v2" at 98 percent: it is completed.' in promoted.stderr
        assert "rollout" not in (await run(*promote, first)).stderr
        await rollout("start", "full", "--template-version", "v2", "--stages", "99,100")
        (tmp_path / "tpl").mkdir()
        (tmp_path / "tpl/main.tf").write_text("")
        push = ("templates", "push", "full", "-d", "tpl", "-y")
        assert "rollout" not in (await run(*push, "--activate=false")).stderr
        assert 'the rollout of version "v2" at 99 percent: it is canceled.' in (await run(*push)).stderr
        await run(*promote, first)
        await rollout("start", "full", "--template-version", "v2", "--stages", "99,100")
        assert "completed at 100 percent" in (await rollout("next", "full", "--yes")).stdout
        template = (await world.get(f"/api/v2/templates/{world.extra['template']['id']}")).json()
        assert template["active_version_id"] == version["id"]


async def _version_of(world: World, workspace: Any) -> str:
    shown = await world.get(f"/api/v2/workspaces/{workspace['id']}")
    return str(shown.json()["latest_build"]["template_version_id"])
