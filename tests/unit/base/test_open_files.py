"""Limit of open files: raised for this process and for none of its children."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from coder.base.open_files import MAX_OPEN_FILES
from tests.kit.agents.scripted_agent import eventually

PROGRAM = """
import asyncio, os, resource, subprocess, sys, trio
from coder.base import open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1000))
open_files.raise_open_files()
def show():
    print(*resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
asks = ["sh", "-c", "ulimit -Sn; ulimit -Hn"]
async def by_asyncio():
    await (await asyncio.create_subprocess_exec(*asks)).wait()
show()
subprocess.run(asks, check=True)
subprocess.run(asks, check=True, preexec_fn=lambda: os.write(1, b"own\\n"))
trio.run(trio.run_process, asks)
asyncio.run(by_asyncio())
with open_files.lowered_open_files():
    show()
show()
open_files.raise_open_files()
subprocess.run(asks, check=True)
with open_files.lowered_open_files():
    os.execvp("sh", asks)
"""


def test_children_get_original_limit() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    child = ["200", "1000"]
    expected = ["1000 1000", *child, "own", *child, *child, *child, "200 1000", "1000 1000", *child, *child]
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize(
    ("limits", "expected"), [("500, 500", 500), ("MAX_OPEN_FILES + 5, MAX_OPEN_FILES + 9", MAX_OPEN_FILES + 5)]
)
def test_sufficient_limit_is_kept(limits: str, expected: int) -> None:
    program = f"""
import resource, subprocess
from coder.base.open_files import MAX_OPEN_FILES, raise_open_files
resource.getrlimit = lambda kind: ({limits})
def setrlimit(*_): raise AssertionError
resource.setrlimit, plain = setrlimit, subprocess.Popen.__init__
raise_open_files()
assert subprocess.Popen.__init__ is plain
print(resource.getrlimit(0)[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == expected


@pytest.mark.parametrize(("refused", "expected"), [("()", "[(1048576, -1)]"), ("(1048576,)", "[(10240, -1)]")])
def test_unlimited_is_bounded(refused: str, expected: str) -> None:
    program = f"""
import resource
from coder.base.open_files import raise_open_files
taken = []
resource.RLIM_INFINITY = -1
resource.getrlimit = lambda kind: (256, -1)
def setrlimit(kind, limits):
    if limits[0] in {refused}: raise ValueError
    taken.append(limits)
resource.setrlimit = setrlimit
raise_open_files()
print(taken)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


ROLES = {
    "agent": ["agent", "--agent-url", "http://127.0.0.1:9", "--agent-token", "b1f7d2a0-4f1c-4a55-9b5f-0f6a5b8f6a11"],
    "daemon": ["provisioner", "start", "--url", "http://127.0.0.1:9", "--psk", "secret"],
    "proxy": [
        "workspace-proxy",
        "server",
        "--primary-access-url",
        "http://127.0.0.1:9",
        "--proxy-session-token",
        "b1f7d2a0-4f1c-4a55-9b5f-0f6a5b8f6a11:secret",
        "--http-address",
        "127.0.0.1:0",
    ],
}


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="reads another process's limits")
@pytest.mark.parametrize("role", ROLES)
async def test_long_running_roles_raise_their_limit(role: str, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1000))

    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "CODER_NO_COMMAND_SERVER": "1"}
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "coder", *ROLES[role]],
            env=environment,
            stdout=out,
            stderr=out,
            preexec_fn=limit,  # noqa: PLW1509 - one system call
        )

    async def raised() -> bool:
        assert process.poll() is None, log.read_text()
        return _soft_limit(process.pid) == 1000

    try:
        await eventually(raised)
    finally:
        process.kill()
        process.wait()


def _soft_limit(pid: int) -> int:
    found = re.search(r"^Max open files +(\d+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
