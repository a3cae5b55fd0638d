"""Forked processes as the supervisor sees them. They run in a process of their own: pytest has threads."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PRELUDE = """
import os, select, signal, time, trio
from coder.base.errors import CoderError
from coder.coderd.processes.children import fork
from coder.coderd.processes.control import Order, Report

def watch(child, until=lambda child: child.status is not None):
    while not until(child):
        select.select([child.control], [], [], 0.05)
        child.reap() or child.read()

"""


def outcome(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_report_arrives_before_the_end() -> None:
    script = """
async def run(link):
    link.send(Report("ready", access_url="http://x"))
child = fork("api-1", run, ())
watch(child)
print(child.is_ready, child.report.access_url, child.status, *child.describe_end())
"""
    assert outcome(script) == ["True http://x 0 exit ended with exit status 0"]


def test_failure_keeps_code_and_hint() -> None:
    script = """
async def run(link):
    raise CoderError("bad_option", "it does not work", "Try another.")
child = fork("api-1", run, ())
watch(child)
print(child.status, child.failure.code, child.failure.hint, *child.describe_end())
"""
    assert outcome(script) == ["1 bad_option Try another. failed it does not work"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_signal_is_named_as_cause(number: signal.Signals) -> None:
    script = f"""
async def run(link):
    os.kill(os.getpid(), {int(number)})
    await trio.sleep_forever()
child = fork("api-1", run, ())
watch(child)
print(*child.describe_end())
"""
    assert outcome(script) == [f"signal killed by {number.name}"]


def test_orders_arrive_and_stop() -> None:
    script = """
async def run(link):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.follow, lambda order: link.send(Report("got", message=order.lost[0])))
        await link.stop_requested.wait()
        nursery.cancel_scope.cancel()
child = fork("api-1", run, ())
child.send(Order("siblings", lost=["one"]))
watch(child, lambda child: child.report is not None)
print(child.report.kind, child.report.message)
child.send(Order("stop"))
watch(child)
print(child.status)
"""
    assert outcome(script) == ["got one", "0"]


def test_lost_supervisor_ends_its_processes() -> None:
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


def test_stalled_process_writes_its_stack() -> None:
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
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "stalled its loop stood still\n"
    assert "in standing_still" in done.stderr
