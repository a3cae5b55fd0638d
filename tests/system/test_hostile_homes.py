"""Homes that cannot be written to, disks that are full, temporary folders nothing may be run from.

Each program runs in a mount namespace of its own where its home is like that. What needs no home works as ever; what
does says which file could not be written and why, in one line; the agent serves, and says once what it cannot keep.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.paths import ROOT
from tests.kit.server.server_process import program_under_test

FILL = "dd if=/dev/zero of=$HOME/fill bs=4096 2>/dev/null"
MOUNTS = {
    "read-only home": ("mount -t tmpfs tmpfs $HOME && mount -o remount,ro $HOME", "Read-only file system"),
    "full disk": (
        f"mount -t tmpfs -o size=1m tmpfs $HOME; {FILL}; export TMPDIR=$HOME CODER_BINARY_CACHE=$HOME.programs",
        "No space left on device",
    ),
    "noexec /tmp": ("mount -t tmpfs -o noexec tmpfs $HOME && export TMPDIR=$HOME", ""),
}
"""How each comes to be, and what the system says there of a file that cannot be written ("" when it can). A built
program that was not unpacked before has no room there and says so (tests/build); it gets the place it asks for."""


@dataclass(frozen=True)
class Line:
    words: tuple[str, ...]
    writes: bool
    "Whether it is of no use without a home."


LINES = (
    Line(("login", "URL", "--token", "TOKEN", "--use-token-as-session"), True),
    Line(("config-ssh", "-y"), True),
    Line(("completion", "--shell", "bash"), True),
    Line(("whoami",), False),
    Line(("list",), False),
    Line(("show", "dev"), False),
    Line(("ssh", "dev", "--", "true"), False),
    Line(("ping", "-n", "1", "dev"), False),
    Line(("create", "made-in-NUMBER", "-y"), False),
    Line(("delete", "made-in-NUMBER", "-y"), False),
)
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("unshare"), reason="mounts"),
]


def inside(mount: str, argv: Sequence[str]) -> list[str]:
    return ["unshare", "-m", "sh", "-c", f'{mount}\nexec "$@"', "sh", *program_under_test(), *argv]


def environment(view: AgentWorld, home: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CODER_", "XDG_", "TMP"))}
    return env | {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "CODER_NO_OPEN": "1"}


@pytest.mark.parametrize("condition", MOUNTS)
async def test_commands(condition: str, tmp_path: Path) -> None:
    mount, said = MOUNTS[condition]
    home = tmp_path / "home"
    home.mkdir()
    wrong: dict[str, str] = {}
    async with (
        workspace_world() as view,
        running_agent(view, DialPolicy(view.world.url), tmp_path / "agent"),
    ):
        env = environment(view, home) | {"CODER_URL": view.world.url, "CODER_SESSION_TOKEN": view.world.token}
        given = {"URL": view.world.url, "TOKEN": view.world.token, "made-in-NUMBER": "made"}
        for line in LINES:
            with trio.fail_after(90):
                done = await trio.run_process(
                    inside(mount, [given.get(word, word) for word in line.words]),
                    env=env,
                    check=False,
                    capture_stdout=True,
                    capture_stderr=True,
                )
            errors = done.stderr.decode()
            told = [one for one in errors.splitlines() if one.startswith("error: ")]
            if line.writes and said:
                fine = done.returncode == 1 and len(told) == 1 and said in told[0] and str(home) in told[0]
            else:
                fine = done.returncode == 0
            if not fine or "Traceback" in errors:
                wrong[" ".join(line.words)] = f"{done.returncode}: {errors}"
    assert not wrong


@asynccontextmanager
async def agent_in(mount: str, view: AgentWorld, home: Path, log: Path) -> AsyncIterator[trio.Process]:
    env = environment(view, home) | {"CODER_AGENT_TOKEN": view.token, "CODER_AGENT_URL": view.world.ctx.access_url}
    with log.open("wb") as out:
        process = await trio.lowlevel.open_process(
            inside(mount, ["agent"]), env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with trio.move_on_after(60) as scope, trio.CancelScope(shield=True):
            await process.wait()
        if scope.cancelled_caught:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("condition", MOUNTS)
async def test_agent_runs_and_logs_problem_once(condition: str, tmp_path: Path) -> None:
    mount, said = MOUNTS[condition]
    home, log = tmp_path / "home", tmp_path / "log"
    home.mkdir()
    async with workspace_world() as view, agent_in(mount, view, home, log) as process:

        async def ready() -> bool:
            assert process.poll() is None, log.read_text()
            return (await view.agent())["lifecycle_state"] == "ready" and "joined the overlay" in log.read_text()

        await eventually(ready, seconds=60)
        env = environment(view, tmp_path) | {"CODER_URL": view.world.url, "CODER_SESSION_TOKEN": view.world.token}
        with trio.fail_after(60):
            done = await trio.run_process(
                [*program_under_test(), "ssh", "dev", "--", "echo $((40+2))"],
                env=env,
                check=False,
                capture_stdout=True,
                stderr=subprocess.STDOUT,
            )
        assert done.stdout.strip() == b"42", done.stdout + log.read_bytes()
        if said:
            lines = [line for line in log.read_text().splitlines() if said in line]
            assert lines and len(lines) == len(set(lines)) <= 4, lines
        assert "Traceback" not in log.read_text()
    assert process.returncode == 0, log.read_text()
