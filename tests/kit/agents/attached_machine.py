"""A machine attached by the server's init script, which a shell runs with few commands on its PATH.

The machine is this one, or a root of its own (tests/kit/agents/machine_roots.py).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from tests.kit.agents.scripted_agent import AgentWorld, eventually

ROOT = Path(__file__).resolve().parents[3]
BASE = ("sh", "mktemp", "chmod", "head", "id", "sleep", "cat", "uname", "env")
"What the script and the program need beside something to fetch with; `env` is the served script's own."
NOBODY = 65534
# A mount namespace of its own: nothing stays mounted, whatever happens.
ENTER = (
    'mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
    'user=$1 && shift && exec chroot --userspec="$user" "$0" "$@"'
)


def tools(folder: Path, *names: str) -> str:
    """A PATH with these commands alone; skips where the machine lacks one."""
    folder.mkdir()
    for name in (*BASE, *names):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed")
        (folder / name).symlink_to(found)
    return str(folder)


def serve_program(site: Path) -> None:
    """Puts a program for this machine where the server finds it."""
    (site / "bin").mkdir(parents=True)
    target = site / "bin/coder-linux-amd64"
    if built := os.environ.get("CODER_TEST_BINARY"):
        shutil.copyfile(built, target)
        return
    target.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\nexec "{sys.executable}" -m coder "$@"\n')


@dataclass
class Attached:
    process: trio.Process
    log: Path


@asynccontextmanager
async def attaching(
    view: AgentWorld,
    folder: Path,
    path: str,
    *,
    shell: tuple[str, ...] = ("sh",),
    user: int | None = None,
    script: str = "",
    arch: str = "amd64",
    env: Mapping[str, str] | None = None,
    root: Path | None = None,
) -> AsyncIterator[Attached]:
    """Runs the server's script as somebody would by hand; ends whatever it became. `root` is the machine's: PATH is of
    there, and so is the home, made in `folder`, which then lies below it."""
    script = script or (await view.world.get(f"/api/v2/init-script/linux/{arch}", token="")).text
    home = folder / "home"
    home.mkdir(mode=0o755)
    if user is not None:
        os.chown(home, user, user)
    there = str(home if root is None else "/" / home.relative_to(root))
    given = {"PATH": path, "HOME": there, "TMPDIR": there, "CODER_AGENT_TOKEN": view.token, **(env or {})}
    given |= {"CODER_AGENT_LOG_DIR": there, "CODER_AGENT_SCRIPT_DATA_DIR": there}
    log = folder / "log"
    command = [str(Path(path) / shell[0]), *shell[1:]]
    if root is not None:
        command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in given.items()), *command]
        who = f"{user or 0}:{user or 0}"
        command = ["unshare", "--mount", "sh", "-c", ENTER, str(root), who, *command]
        given, user = {"PATH": os.environ["PATH"]}, None
    with log.open("wb") as out:
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=given,
            cwd="/",
            start_new_session=True,
            user=user,
            group=user,
        )
    assert process.stdin is not None
    await process.stdin.send_all(script.encode())
    await process.stdin.aclose()
    try:
        yield Attached(process, log)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        with trio.move_on_after(60) as scope, trio.CancelScope(shield=True):
            await process.wait()
        if scope.cancelled_caught:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def connected(view: AgentWorld, attached: Attached, seconds: float = 60) -> None:
    async def look() -> bool:
        assert attached.process.poll() is None, attached.log.read_text()
        return bool((await view.agent())["status"] == "connected")

    try:
        await eventually(look, seconds=seconds)
    except trio.TooSlowError:
        raise AssertionError(attached.log.read_text()) from None
