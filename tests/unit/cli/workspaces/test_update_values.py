"""`coder update` and `restart` with values: refused before the stop, and repeatable."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coder.cli.ui import progress
from coder.cli.workspaces import lifecycle
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.provisioners.scripted_provisioner import ended, new_version, upload
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, settled, workspace_world

TEMPLATE = """
data "coder_parameter" "region" {
  name    = "region"
  default = "eu"
  option {
    name  = "Europe"
    value = "eu"
  }
  option {
    name  = "US"
    value = "us"
  }
}
data "coder_parameter" "cpu" {
  name    = "cpu"
  type    = "number"
  mutable = true
  default = 2
  validation {
    min       = 1
    max       = 8
    monotonic = "increasing"
  }
}
data "coder_parameter" "debug" {
  name      = "debug"
  type      = "bool"
  mutable   = true
  ephemeral = true
  default   = false
}
"""


@dataclass
class Commands:
    """Commands about a running workspace."""

    world: World
    home: Path
    workspace: Any

    async def run(self, *words: str) -> Result:
        env = {"CODER_URL": self.world.url, "CODER_SESSION_TOKEN": self.world.token}
        return await run_cli(list(words), home=self.home, env=env)

    async def latest(self) -> Any:
        return (await settled(self.world, self.workspace["id"]))["latest_build"]

    async def values(self) -> dict[str, str]:
        build = await self.latest()
        answer = await self.world.get(f"/api/v2/workspacebuilds/{build['id']}/parameters")
        return {item["name"]: item["value"] for item in answer.json()}


@asynccontextmanager
async def _commands(home: Path, *, classic: bool) -> AsyncIterator[Commands]:
    async with workspace_world() as (world, _):
        path = f"/api/v2/templates/{world.extra['template']['id']}"
        if classic:
            changed = await world.patch(path, {"use_classic_parameter_flow": True})
        else:
            file = await upload(world, {"main.tf": TEMPLATE})
            version = await new_version(world, template_id=world.extra["template"]["id"], file_id=file)
            await ended(world, f"/api/v2/templateversions/{version['id']}")
            changed = await world.patch(f"{path}/versions", {"id": version["id"]})
        assert changed.is_success, changed.text
        values = [{"name": "cpu", "value": "4"}]
        yield Commands(world, home, await new_workspace(world, "ws", rich_parameter_values=values))


REFUSED = {
    "cpu=1": "must be equal or greater than previous value: 4",
    "cpu=9": "value 9 is more than the maximum 8",
    "cpu=many": "is not a number",
    "region=us": "immutable",
    "unknown=1": "is not present in the template",
}
"""Value -> what the command says."""


@pytest.mark.parametrize("classic", [True, False], ids=["classic", "dynamic"])
async def test_refused_value_stops_nothing(tmp_path: Path, *, classic: bool) -> None:
    async with _commands(tmp_path, classic=classic) as commands:
        for command in (["update"], ["restart", "-y"]):
            for value, reason in REFUSED.items():
                result = await commands.run(*command, "ws", "--parameter", value)
                assert result.code == 1 and reason in result.stderr, (command, value, result)
                assert (await commands.latest())["build_number"] == 1, (command, value)


@pytest.mark.parametrize("classic", [True, False], ids=["classic", "dynamic"])
async def test_update_with_same_values_builds_once(tmp_path: Path, *, classic: bool) -> None:
    async with _commands(tmp_path, classic=classic) as commands:
        for is_repeated in (False, True):
            result = await commands.run("update", "ws", "--parameter", "cpu=6", "--parameter", "region=eu")
            assert result.code == 0 and (result.stdout == "Workspace is up-to-date.\n") == is_repeated, result
            assert (await commands.latest())["build_number"] == 3
            assert (await commands.values())["cpu"] == "6"


async def test_ephemeral_value_builds_each_time(tmp_path: Path) -> None:
    async with _commands(tmp_path, classic=True) as commands:
        for number in (3, 5):
            assert (await commands.run("update", "ws", "--ephemeral-parameter", "debug=true")).code == 0
            assert (await commands.latest())["build_number"] == number


async def test_accepted_value_restarts(tmp_path: Path) -> None:
    async with _commands(tmp_path, classic=True) as commands:
        assert (await commands.run("restart", "ws", "-y", "--parameter", "cpu=5")).code == 0
        latest = await commands.latest()
        assert latest["status"] == "running" and (await commands.values())["cpu"] == "5"


@pytest.mark.parametrize("command", [["update"], ["restart", "-y"]])
async def test_intruding_start_is_replaced(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SSH client of an editor starts the stopped workspace with its old values."""
    watch = progress.watch_build
    intruders: list[int] = []

    def watch_and_intrude(client: Any, created: Any) -> Any:
        result = watch(client, created)
        if created.transition == "stop" and not intruders:
            path = f"/api/v2/workspaces/{created.workspace_id}/builds"
            intruders.append(client.request("POST", path, json={"transition": "start"}).json()["build_number"])
        return result

    async with _commands(tmp_path, classic=True) as commands:
        monkeypatch.setattr(lifecycle, "watch_build", watch_and_intrude)
        result = await commands.run(*command, "ws", "--parameter", "cpu=6")
        assert result.code == 0, result
        assert intruders == [3]
        assert (await commands.latest())["status"] == "running" and (await commands.values())["cpu"] == "6"
