"""Output on a terminal, which differs from that to pipes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from tests.kit.paths import ROOT
from tests.kit.programs.command_line import Terminal, plain
from tests.kit.provisioners.scripted_provisioner import agent, new_template, resource
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world

ENTER, DOWN = "\r", "\x1b[B"


@contextmanager
def typed(world: World, home: Path, *words: str, columns: int = 120, **env: str) -> Iterator[Terminal]:
    environment = {
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "CODER_URL": world.url,
        "CODER_SESSION_TOKEN": world.token,
        **env,
    }
    terminal = Terminal([sys.executable, "-m", "coder", *words], environment, columns=columns)
    try:
        yield terminal
    finally:
        terminal.close()


async def on_terminal(talk: Callable[[], None]) -> None:
    await trio.to_thread.run_sync(talk)


async def test_create_workspace_with_prompts(tmp_path: Path) -> None:
    async with workspace_world() as (world, answers):
        await new_workspace(world, "taken")
        await new_template(world, "other")
        box = resource("box", agents=[agent()])
        box.daily_cost = 3
        answers.dry_run = lambda job: {"resources": [box, resource("disk")]}

        def talk() -> None:
            with typed(world, tmp_path, "create") as terminal:
                terminal.expect("name for your workspace: ")
                terminal.type("bad name\n")
                terminal.expect("must be alphanumeric with hyphens")
                terminal.expect("name for your workspace: ")
                terminal.type("taken\n")
                terminal.expect('already exists named "taken"')
                terminal.expect("name for your workspace: ")
                terminal.type("mine\n")
                terminal.expect("other")
                terminal.type("full")
                terminal.expect("full")
                terminal.type(ENTER)
                terminal.expect("Europe")
                terminal.type(DOWN + ENTER)
                terminal.expect(r"Enter a value:.*\(2\) ")
                terminal.type("4\n")
                output = plain(terminal.expect(r"Confirm create\? \(YES/no\) "))
                assert "terraform_data.box  (costs 3 a day)" in output and "└─ main (linux, amd64)" in output
                assert "terraform_data.disk" in output and "=== ✔ Queued" in output
                terminal.type("\n")
                end = plain(terminal.rest())
                assert "=== ✔ Working" in end and "The mine workspace has been created!" in end
                assert terminal.code() == 0

        await on_terminal(talk)
        workspace = (await world.get("/api/v2/users/me/workspace/mine")).json()
        assert workspace["template_name"] == "full"
        values = (await world.get(f"/api/v2/workspacebuilds/{workspace['latest_build']['id']}/parameters")).json()
        assert {value["name"]: value["value"] for value in values} == {"region": "us", "cpu": "4", "debug": "false"}


async def test_declined_confirmation_creates_nothing(tmp_path: Path) -> None:
    async with workspace_world() as (world, answers):

        def talk() -> None:
            with typed(world, tmp_path, "create", "mine", "-t", "full", "--use-parameter-defaults") as terminal:
                terminal.expect("Planned resources:")
                terminal.expect(r"Confirm create\? \(YES/no\) ")
                terminal.type("no\n")
                assert "canceled" in plain(terminal.rest())
                assert terminal.code() == 1

        await on_terminal(talk)
        assert [job.WhichOneof("type") for job in answers.seen] == ["template_import", "template_dry_run"]
        assert (await world.get("/api/v2/users/me/workspace/mine")).status_code == 404


async def test_failed_build_prints_whole_log(tmp_path: Path) -> None:
    async with workspace_world() as (world, answers):
        await new_workspace(world, "ws")
        answers.build = lambda job: {"error": "out of luck"}

        def talk() -> None:
            with typed(world, tmp_path, "stop", "ws", "-y") as terminal:
                end = terminal.rest()
                assert b"\x1b[31m=== \xe2\x9c\x98 Working" in end
                assert "a workspace_build" in plain(end) and "error: out of luck" in plain(end)
                assert terminal.code() == 1

        await on_terminal(talk)


async def test_tables_on_a_terminal(tmp_path: Path) -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "a-workspace-with-a-long-name")
        await world.request("PUT", f"/api/v2/workspaces/{workspace['id']}/favorite")

        def talk() -> None:
            with typed(world, tmp_path, "list", columns=80) as terminal:
                wide = terminal.rest()
                assert b"\x1b[32mStart" in wide and b"\x1b[1mWORKSPACE" in wide
                lines = plain(wide).splitlines()
                assert [line.split()[-1] for line in lines[:2]] == ["STOPS", "AFTER"]
                assert lines[2].startswith("★ admin/") and "…" in lines[2]
                assert max(map(len, lines)) <= 80
            with typed(world, tmp_path, "list", NO_COLOR="1") as terminal:
                assert b"\x1b" not in terminal.rest()
            with typed(world, tmp_path, "list", TERM="dumb") as terminal:
                assert b"\x1b" not in terminal.rest()
            with typed(world, tmp_path, "show", workspace["name"]) as terminal:
                output = plain(terminal.rest())
            assert re.match(r"★ admin/a-\S+  Started  template full \(\S+\)  up <1m\n", output)
            assert "└─ main (linux, amd64)  connecting  created" in output
            assert "   app web  initializing\n   app pub\n" in output

        await on_terminal(talk)


async def test_verbose_masks_secrets(tmp_path: Path) -> None:
    async with workspace_world() as (world, _):

        def talk() -> None:
            with typed(world, tmp_path, "-v", "whoami") as terminal:
                output = plain(terminal.rest())
            assert re.search(rf"GET {re.escape(world.url)}/api/v2/users/me 200 \(\d+ ms\)", output)
            assert world.token not in output

        await on_terminal(talk)
