"""Memory and processor time of built-in daemons' processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

from coder.base.host import TERRAFORM_OOM_SCORE
from coder.provisionerd.terraform import limits, process
from coder.provisionerd.terraform.limits import LEAST_MEMORY, MEMORY_VARIABLE, ProcessLimits, builtin_limits
from coder.provisionerd.terraform.process import Runner
from tests.kit.paths import ROOT

linux = pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux")
_WAITS = """
import resource, time
while resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY: time.sleep(0.01)
"""
GREEDY = _WAITS + "kept = bytearray(1 << 30)"
GREEDY_CHILD = _WAITS + f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {GREEDY!r}]))"
BUSY = _WAITS + "while True: pass"
BUSY_CHILD = _WAITS + f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {BUSY!r}]))"
BUSY_FOR_A_WHILE = _WAITS + "while time.process_time() < 0.8: pass"
BUSY_ELSEWHERE = (
    _WAITS
    + f"""
import subprocess, sys
sys.exit(subprocess.call([sys.executable, '-c', {BUSY_FOR_A_WHILE!r}], start_new_session=True))
"""
)
AGENT = (
    _WAITS
    + """
import subprocess, sys
from coder.base.host import lift_terraform_limits
lift_terraform_limits()
print(resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY)
print(resource.getrlimit(resource.RLIMIT_CPU)[0] == resource.RLIM_INFINITY, open('/proc/self/oom_score_adj').read())
"""
)
MODEST = _WAITS + "kept = bytearray(1 << 20); print(open('/proc/self/oom_score_adj').read())"


async def run(code: str, folder: Path, given: ProcessLimits, **env: str) -> tuple[int, bytes, bytes]:
    runner = Runner(sys.executable, folder, 5.0, given)
    with trio.fail_after(60):
        return await runner.capture(["-c", code], env)


@linux
@pytest.mark.parametrize("code", [GREEDY, GREEDY_CHILD], ids=["itself", "its child"])
async def test_greedy_process_has_no_memory(code: str, tmp_path: Path) -> None:
    status, _, error = await run(code, tmp_path, ProcessLimits(memory=256 << 20))
    assert status == 1
    assert b"MemoryError" in error


@linux
@pytest.mark.parametrize("code", [BUSY, BUSY_CHILD], ids=["itself", "its child"])
async def test_busy_process_is_ended(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_POLL", 0.1)
    runner = Runner(sys.executable, tmp_path, 5.0, ProcessLimits(memory=1 << 30, cpu_seconds=0.3))
    with trio.fail_after(60):
        status, _, _ = await runner.capture(["-c", code], {})
    assert status == -9
    assert runner.explain(status) == "it used more than 0.3 s of processor time and was killed"


@linux
async def test_agent_lifts_limits(tmp_path: Path) -> None:
    """A template may start a workspace's agent on this machine: it outlives terraform and its limits."""
    given = ProcessLimits(memory=1 << 30, cpu_seconds=60)
    status, out, error = await run(AGENT, tmp_path, given, PYTHONPATH=str(ROOT))
    assert (status, error) == (0, b"")
    assert out.split() == [b"True", b"True", b"0"]


@linux
async def test_session_of_agent_keeps_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_POLL", 0.1)
    given = ProcessLimits(memory=1 << 30, cpu_seconds=0.3)
    assert await run(BUSY_ELSEWHERE, tmp_path, given) == (0, b"", b"")


async def test_captured_output_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_CAPTURE", 4 << 20)
    runner = Runner(sys.executable, tmp_path, 5.0)
    endless = "import sys\nwhile True: sys.stdout.write('x' * 4096); sys.stderr.write('e' * 4096)"
    with trio.fail_after(60):
        status, out, error = await runner.capture(["-c", endless], {})
    assert status == -9
    assert 0 < len(out) <= 4 << 20 and len(error) <= 65536
    assert runner.explain(status) == "it printed more than 4 MiB and was killed"


@linux
async def test_modest_process_runs(tmp_path: Path) -> None:
    status, out, error = await run(MODEST, tmp_path, ProcessLimits(memory=256 << 20, cpu_seconds=60))
    assert (status, error) == (0, b"")
    assert out.strip() == TERRAFORM_OOM_SCORE.encode()


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
