"""Forked processes as the supervisor sees them. They run in processes of their own: pytest has threads.

Importing the server takes more than a second, so one process imports it and forks for each script.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PRELUDE = """
import os, select, signal, time, trio, trio.testing
from uuid import UUID
from coder.base.errors import CoderError
from coder.coderd.processes.children import fork
from coder.coderd.processes.control import Order, Report

def watch(child, until=lambda child: child.status is not None):
    while not until(child):
        select.select([child.control], [], [], 0.05)
        child.reap() or child.read()

"""


RUN_SCRIPTS = """
import json, sys, traceback
for line in sys.stdin:
    order = json.loads(line)
    forked = os.fork()
    if not forked:
        for number, file in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(order[file], os.O_WRONLY | os.O_CREAT), number)
        status = 1
        try:
            exec(order["script"], globals())
            sys.stdout.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]), flush=True)
"""
Outcome = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def scripts() -> Iterator[subprocess.Popen[str]]:
    """Yield a process that runs each script of its input in a fork and prints the exit status."""
    words = [sys.executable, "-c", PRELUDE + RUN_SCRIPTS]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin
        process.stdin.close()


@pytest.fixture
def outcome(scripts: subprocess.Popen[str], tmp_path: Path) -> Outcome:
    """Run a script; return the lines of its stdout. Its stderr is in `tmp_path`."""

    def run(script: str) -> list[str]:
        stdout, stderr = tmp_path / "stdout", tmp_path / "stderr"
        assert scripts.stdin and scripts.stdout
        scripts.stdin.write(json.dumps({"script": script, "stdout": str(stdout), "stderr": str(stderr)}) + "\n")
        scripts.stdin.flush()
        assert scripts.stdout.readline() == "0\n", stderr.read_text()
        return stdout.read_text().splitlines()

    return run


def test_report_arrives_before_the_end(outcome: Outcome) -> None:
    script = """
async def run(link):
    link.send(Report("ready", access_url="http://x"))
child = fork("api-1", run, ())
watch(child)
print(child.is_ready, child.report.access_url, child.status, *child.describe_end())
"""
    assert outcome(script) == ["True http://x 0 exit ended with exit status 0"]


def test_failure_keeps_code_and_hint(outcome: Outcome) -> None:
    script = """
async def run(link):
    raise CoderError("bad_option", "it does not work", "Try another.")
child = fork("api-1", run, ())
watch(child)
print(child.status, child.failure.code, child.failure.hint, *child.describe_end())
"""
    assert outcome(script) == ["1 bad_option Try another. failed it does not work"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_signal_is_named_as_cause(number: signal.Signals, outcome: Outcome) -> None:
    script = f"""
async def run(link):
    os.kill(os.getpid(), {int(number)})
    await trio.sleep_forever()
child = fork("api-1", run, ())
watch(child)
print(*child.describe_end())
"""
    assert outcome(script) == [f"signal killed by {number.name}"]


def test_orders_arrive_and_stop(outcome: Outcome) -> None:
    script = """
async def run(link):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.follow, lambda order: link.send(Report("got", message=str(order.lost[0]))))
        await link.stop_requested.wait()
        nursery.cancel_scope.cancel()
child = fork("api-1", run, ())
child.send(Order("siblings", lost=[UUID(int=1)]))
watch(child, lambda child: child.report is not None)
print(child.report.kind, child.report.message)
child.send(Order("stop"))
watch(child)
print(child.status)
"""
    assert outcome(script) == ["got 00000000-0000-0000-0000-000000000001", "0"]


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_spares_draining_worker(first: signal.Signals, outcome: Outcome) -> None:
    """Ctrl-C in a terminal signals all processes, and then the supervisor asks them to stop."""
    script = f"""
from types import SimpleNamespace
from coder.coderd.processes.forked import _wait_until_stopped
async def run(link):
    async def announce():
        await trio.testing.wait_all_tasks_blocked()
        link.send(Report("ready"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(announce)
        await _wait_until_stopped(link, SimpleNamespace(idle=trio.Event()))
    link.send(Report("draining"))
    await trio.lowlevel.wait_readable(link._control)
    os.kill(os.getpid(), signal.SIGTERM)  # as the one that follows the order
    await trio.lowlevel.checkpoint()
    link.send(Report("drained"))
child = fork("api-1", run, ())
watch(child, lambda child: child.is_ready)
os.kill(child.pid, {int(first)})
watch(child, lambda child: child.report.kind == "draining")
child.ask_to_stop(60)
watch(child)
print(child.report.kind, *child.describe_end())
"""
    assert outcome(script) == ["drained exit ended with exit status 0"]


def test_lost_supervisor_ends_its_processes(outcome: Outcome) -> None:
    script = """
async def run(link):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.follow, lambda order: None)
        await link.stop_requested.wait()
        nursery.cancel_scope.cancel()
child = fork("api-1", run, ())
child.control.close()
print(os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]))
"""
    assert outcome(script) == ["0"]


def test_stalled_process_writes_its_stack(outcome: Outcome, tmp_path: Path) -> None:
    script = """
async def run(link):
    def standing_still():
        link.send(Report("ready"))
        time.sleep(600)
    standing_still()
child = fork("api-1", run, ())
watch(child, lambda child: child.is_ready)
child.kill_stalled("its loop stood still")
watch(child)
print(*child.describe_end())
"""
    assert outcome(script) == ["stalled its loop stood still"]
    assert "in standing_still" in (tmp_path / "stderr").read_text()


def test_orphans_are_reaped_and_children_are_not(outcome: Outcome) -> None:
    """The script takes in orphans as the first process of a container does."""
    assert outcome("""
import ctypes
from coder.coderd.processes.children import reap_orphans

def zombies():
    own = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    return sorted(int(pid) for pid in own if open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z")

ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
parent = os.fork()
if not parent:
    for _ in range(3):
        os.fork() or os._exit(0)
    os._exit(0)
os.waitpid(parent, 0)
known = os.fork()
if not known:
    os._exit(7)
until = time.monotonic() + 30
while len(zombies()) < 4 and time.monotonic() < until:
    time.sleep(0.01)
print(len(zombies()))
reap_orphans([known])
print(len(zombies()))
reap_orphans([known], is_init=True)
print(zombies() == [known], os.waitstatus_to_exitcode(os.waitpid(known, 0)[1]))
reap_orphans([], is_init=True)
""") == ["4", "4", "True 7"]
