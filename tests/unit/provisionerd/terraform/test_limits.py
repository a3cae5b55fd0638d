"""Memory and processor time of built-in daemons' processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

from coder.provisionerd.terraform import limits
from coder.provisionerd.terraform.limits import LEAST_MEMORY, MEMORY_VARIABLE, ProcessLimits, builtin_limits
from coder.provisionerd.terraform.process import Runner

linux = pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux")
_WAITS = """
import resource, time
while resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY: time.sleep(0.01)
"""
GREEDY = _WAITS + "kept = bytearray(1 << 30)"
GREEDY_CHILD = _WAITS + f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {GREEDY!r}]))"
BUSY = _WAITS + "while True: pass"
MODEST = _WAITS + "kept = bytearray(1 << 20); print(open('/proc/self/oom_score_adj').read())"


async def run(code: str, folder: Path, given: ProcessLimits) -> tuple[int, bytes, bytes]:
    runner = Runner(sys.executable, folder, 5.0, given)
    with trio.fail_after(60):
        return await runner.capture(["-c", code], {})


@linux
@pytest.mark.parametrize("code", [GREEDY, GREEDY_CHILD], ids=["itself", "its child"])
async def test_greedy_process_has_no_memory(code: str, tmp_path: Path) -> None:
    status, _, error = await run(code, tmp_path, ProcessLimits(memory=256 << 20))
    assert status == 1
    assert b"MemoryError" in error


@linux
async def test_busy_process_is_ended(tmp_path: Path) -> None:
    status, _, _ = await run(BUSY, tmp_path, ProcessLimits(memory=1 << 30, cpu_seconds=1))
    assert status == -24, "SIGXCPU"


@linux
async def test_modest_process_runs(tmp_path: Path) -> None:
    status, out, error = await run(MODEST, tmp_path, ProcessLimits(memory=256 << 20, cpu_seconds=60))
    assert (status, error) == (0, b"")
    assert out.strip() == limits._OOM_SCORE.encode()


async def test_ended_process_is_no_error(tmp_path: Path) -> None:
    ProcessLimits(memory=1 << 30, cpu_seconds=1).apply(2**22 + 1)
    assert (await run("pass", tmp_path, ProcessLimits()))[0] == 0


def test_daemons_leave_half_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "container_memory", lambda: (0, 64 << 30))
    assert builtin_limits(4, {}).memory == 8 << 30
    assert builtin_limits(100, {}).memory == LEAST_MEMORY
    assert builtin_limits(4, {MEMORY_VARIABLE: "512"}).memory == 512 << 20
    assert builtin_limits(4, {MEMORY_VARIABLE: "0"}).memory == 0
    monkeypatch.setattr(limits, "container_memory", lambda: (None, None))
    assert builtin_limits(4, {MEMORY_VARIABLE: "much"}).memory == LEAST_MEMORY
