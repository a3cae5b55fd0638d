"""start.sh of the local-process template: the unpacked program that its agent uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

START = Path(__file__).resolve().parents[5] / "coder/coderd/examples/local-process/start.sh"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the script is shell")


@pytest.mark.parametrize(
    ("folder", "mode", "taken"),
    [(".cache", 0o700, True), ("elsewhere", 0o700, True), (".cache", 0o600, False), ("", 0, False)],
    ids=["in the home", "XDG_CACHE_HOME", "not to be run", "none"],
)
def test_agent_uses_executable_unpacked_program(folder: str, mode: int, taken: bool, tmp_path: Path) -> None:
    place, home, log = tmp_path / "workspace", tmp_path / "home", tmp_path / "log"
    os.mkfifo(log)
    home.mkdir()
    cache = home / folder / "coder/dist"
    if folder:
        program = cache / "0a1b" / "coder"
        program.parent.mkdir(parents=True)
        program.touch(mode)
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\necho "${{CODER_BINARY_CACHE:-none}}" > {log}\n')
    agent.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "FOLDER": str(place), "CODER_BINARY": str(agent)}
    env |= {"CODER_AGENT_TOKEN": "t", "CODER_AGENT_URL": "http://x", "INIT_SCRIPT": "exit 1"}
    if folder == "elsewhere":
        env["XDG_CACHE_HOME"] = str(home / folder)
    subprocess.run(["sh", str(START)], env=env, check=True, capture_output=True)
    assert log.read_text().strip() == (str(cache) if taken else "none")
