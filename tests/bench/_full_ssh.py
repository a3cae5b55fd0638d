"""Part `ssh`: `ssh W ls` ten times a second, by OpenSSH through our ProxyCommand with a warm command server.

The next begins although earlier ones are under way, up to `MOST` of them; one that cannot begin then counts as failed.
A session counts from its start to the exit of OpenSSH.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path

import trio

from tests.bench._full import Emit, Options
from tests.bench._full_place import p99, spent
from tests.bench._workspace import program
from tests.bench.first import Place, note, prepare

RATE = 10
PATIENCE = 30.0
MOST = 30
"""Sessions at a time. A machine that is slower than the rate would start ever more."""


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    place = Place(program(folder), folder)
    place.env["CODER_PROCESSES"] = str(options.processes)
    place.env["CODER_API_RATE_LIMIT"] = "-1"  # one user begins more sessions a minute than it has requests
    with place.server():
        prepare(place)
        with place.agent() as agent:
            config = folder / "ssh_config"
            place.coder("config-ssh", "-y", "--ssh-config-file", str(config))
            for _ in range(5):  # starts the command server, which finds the direct path
                subprocess.run(_command(config), env=place.env, check=True, capture_output=True)
            time.sleep(3)
            seconds = max(options.seconds(options.ssh_minutes), 5)
            agents = spent([agent.process.pid])
            times, failures = trio.run(_sessions, place, config, seconds)
            agents = spent([agent.process.pid]) - agents
    skipped = sum("not begun" in failure for failure in failures)
    name = f"ssh W ls at {RATE}/s for {seconds / 60:.1f} minutes, warm, {_what(place)}"
    emit(f"{name}: median", statistics.median(times), "ms", None)
    emit(f"{name}: p99", p99(times), "ms", 100)
    emit(f"{name}: longest", max(times), "ms", None)
    emit(f"{name}: failed of {len(times) + skipped}", len(failures), "sessions", 0)
    emit(f"{name}: agent's CPU of a session", agents / len(times), "ms", None)
    for failure in sorted(set(failures))[:3]:
        note(f"  {failure}")


def _what(place: Place) -> str:
    return "sources" if place.binary.parent == place.folder else "binary"


def _command(config: Path) -> list[str]:
    return ["ssh", "-F", str(config), "-o", "BatchMode=yes", "coder.ws", "ls", "/"]


async def _sessions(place: Place, config: Path, seconds: float) -> tuple[list[float], list[str]]:
    """Milliseconds of every session, and why some failed."""
    times: list[float] = []
    failures: list[str] = []

    under_way = trio.CapacityLimiter(MOST)

    async def one() -> None:
        try:
            under_way.acquire_nowait()
        except trio.WouldBlock:
            failures.append(f"not begun, {MOST} were under way")
            return
        try:
            await measured()
        finally:
            under_way.release()

    async def measured() -> None:
        began = time.perf_counter()
        with trio.move_on_after(PATIENCE) as scope:
            done = await trio.run_process(
                _command(config), env=place.env, capture_stdout=True, capture_stderr=True, check=False
            )
            if done.returncode or b"tmp" not in done.stdout:
                failures.append(f"status {done.returncode}: {done.stderr.decode(errors='replace')[-200:]}")
        if scope.cancelled_caught:
            failures.append(f"no end within {PATIENCE:.0f} s")
        times.append((time.perf_counter() - began) * 1000)

    note(f"{RATE} sessions a second for {seconds:.0f} s …")
    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        for number in range(round(seconds * RATE)):
            await trio.sleep_until(began + number / RATE)
            nursery.start_soon(one)
    return times, failures
