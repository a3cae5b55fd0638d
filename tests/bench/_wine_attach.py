"""Time from the line that a person pastes to a connected agent, for the Windows program under Wine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

from coder.domain.agents.init_scripts import attach_command
from tests.bench.first import Place, wait
from tests.kit.wine.attached_program import started_by
from tests.kit.wine.machine import InstalledProgram, installed_program, missing_tools

ROUNDS = 3


def why_not(program: Path) -> str:
    """Return why the program cannot be attached here; empty if it can."""
    if not program.exists():
        return f"{program.name} was not built (build/build.py --platform windows-amd64)"
    return f"not installed: {', '.join(tools)}" if (tools := missing_tools()) else ""


def attach_seconds(place: Place, program: Path, token: str, is_connected: Callable[[], bool]) -> float:
    """Return the median of some rounds, after one that warms Wine and the unpacked program.

    The interpreter of the test kit takes PowerShell's place: it downloads, verifies and starts as the line says.
    """
    offered = place.folder / "cache/bin" / program.name
    offered.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(program, offered)
    folder = place.folder / "windows"
    folder.mkdir()
    with installed_program(folder, str(program)) as installed:
        # The server stays when the last program has ended, and so do Wine's services, with the outputs that they got.
        for command in (["wineserver", "-p"], ["wine", "cmd", "/c", "exit"]):
            silent = subprocess.DEVNULL
            subprocess.run(command, env=installed.machine.env, stdout=silent, stderr=silent, check=True)
        _attach(place, installed, token, is_connected)
        return median(_attach(place, installed, token, is_connected) for _ in range(ROUNDS))


def _attach(place: Place, installed: InstalledProgram, token: str, is_connected: Callable[[], bool]) -> float:
    wait(lambda: not is_connected())  # of the round before
    began = time.perf_counter()
    _, words, env = started_by(attach_command(place.url, "windows", "amd64", token), installed)
    with (place.folder / "windows.log").open("ab") as log:
        piped = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log)
    agent = subprocess.Popen(
        ["wine", str(installed.program), *words],
        env={**installed.variables, **env, "TEMP": "C:\\windows\\temp"},
        stdin=subprocess.DEVNULL,
        stdout=piped.stdin,
        stderr=piped.stdin,
        start_new_session=True,
    )
    assert piped.stdin is not None
    piped.stdin.close()
    try:
        wait(is_connected, 120)
        return time.perf_counter() - began
    finally:
        for pid in installed.machine.processes(installed.program.name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        agent.wait()
        piped.kill()  # Wine's own processes have the pipe, too
        piped.wait()


def token_of(place: Place, workspace: str) -> str:
    shown = json.loads(place.coder("external-workspaces", "agent-instructions", workspace, "--output=json").stdout)
    return str(shown["auth_token"])
