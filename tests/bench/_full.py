"""`scripts/bench scale --full`: the targets for scale, measured once and whole.

Each part runs in a process of its own and stops within its limit. Its rows are kept as they come, so a part that fails
costs no row that was measured before. What a part leaves running is ended with it.
python -m tests.bench._full PART OPTIONS FILE runs one part and appends its rows to the file.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.bench._failures import reason
from tests.bench.first import ROOT, note, row

GRACE = 60.0
"""Seconds that a part has to end what it started."""


@dataclass(frozen=True)
class Options:
    """What a run of the full form measures, and how much of it."""

    parts: tuple[str, ...] = ()
    scale: float = 1.0
    """Factor of every count and duration, for a trial in small."""
    steady: float = 10.0
    """Minutes that the agents stay connected."""
    agents: int = 0
    """Number of agents; 0 searches the largest that holds."""
    sessions: int = 100
    replacements: int = 50
    upgrade_minutes: float = 12.0
    ssh_minutes: float = 5.0
    processes: int = 2
    """`--processes` of the servers, where a part does not compare several."""

    def count(self, number: float, least: int = 1) -> int:
        """Return a count in this run's scale."""
        return max(round(number * self.scale), least)

    def seconds(self, minutes: float) -> float:
        """Return a duration in this run's scale."""
        return minutes * 60 * self.scale


class Emit(Protocol):
    """Keeps a row."""

    def __call__(self, metric: str, value: float, unit: str, target: float | None, *, better: str = "lower") -> None:
        """Keep it."""


@dataclass(frozen=True)
class Part:
    """One part: where it is, and the minutes after which it is stopped."""

    module: str
    minutes: Callable[[Options], float]


PARTS = {
    "fresh": Part("_full_fresh", lambda _: 3),
    "costs": Part("_full_costs", lambda _: 5),
    "coordinator": Part("_full_coordinator", lambda _: 4),
    "builds": Part("_full_builds", lambda _: 9),
    "relay": Part("_full_relay", lambda _: 6),
    "ssh": Part("_full_ssh", lambda options: 3 + options.ssh_minutes * options.scale),
    "agents": Part("_full_agents", lambda options: 20 + options.steady * options.scale),
    "upgrades": Part("_full_upgrades", lambda options: 6 + 1.5 * options.upgrade_minutes * options.scale),
}


class SkippedError(Exception):
    """This machine cannot measure something; the message says why."""


def measure(options: Options) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of the chosen parts, and what has no row."""
    rows: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    _become_subreaper()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="coder-bench-full-", dir="/tmp") as folder:
        for name in options.parts or tuple(PARTS):
            limit = PARTS[name].minutes(options) * 60
            note(f"part {name}, at most {limit / 60:.0f} minutes …")
            began, file, is_over = time.monotonic(), Path(folder) / f"{name}.jsonl", False
            file.touch()
            try:
                status = _run(name, options, file, limit)
            except KeyboardInterrupt:
                status, is_over = 1, True
            for line in file.read_text().splitlines():
                found = json.loads(line)
                skipped |= found.get("skipped", {})
                rows += [found] if "metric" in found else []
            is_complete = status == 0
            if not is_complete and not any(key.startswith(f"part {name}") for key in skipped):
                skipped[f"part {name}"] = reason(TimeoutError(f"stopped after {limit / 60:.0f} minutes"))
            rows.append(row(f"part {name} measured to its end", is_complete, "", 1, better="higher"))
            rows.append(row(f"part {name}: wall", (time.monotonic() - began) / 60, "min", None))
            if is_over:
                skipped["later parts"] = reason(InterruptedError("the run was interrupted"))
                break
    return rows, skipped


def _run(name: str, options: Options, file: Path, limit: float) -> int:
    """Run a part; its exit status. Interrupted after `limit` seconds, killed if that does not end it."""
    command = [sys.executable, "-m", "tests.bench._full", name, json.dumps(asdict(options)), str(file)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    try:
        status = _wait(process.pid, limit)
        if status is None:
            note(f"part {name} takes too long and is stopped")
            os.kill(process.pid, signal.SIGINT)
            if _wait(process.pid, GRACE) is None:
                os.killpg(process.pid, signal.SIGKILL)
                _wait(process.pid, GRACE)
            status = 1
    except BaseException:
        os.killpg(process.pid, signal.SIGINT)
        _wait(process.pid, GRACE)
        raise
    finally:
        _end_left(process.pid)
    process.returncode = status
    return status


def _wait(pid: int, seconds: float) -> int | None:
    """Reap our children until this one has ended; None if it has not by then."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == pid:
                return os.waitstatus_to_exitcode(status)
            if ended:
                continue
        time.sleep(0.2)
    return None


def _end_left(part: int) -> None:
    """End the processes that a part left behind, which are our children now."""
    left: set[int] = set()
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL):
        for _ in range(25):
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            left = set(_children()) - {part}
            if not left:
                return
            time.sleep(0.2)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _children() -> Iterator[int]:
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            yield from map(int, (task / "children").read_text().split())


def _become_subreaper() -> None:
    """Inherit what a part leaves behind."""
    _set(36, 1)  # PR_SET_CHILD_SUBREAPER


def _set(option: int, value: int) -> None:
    """prctl(2)."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def run_part(name: str, options: Options, file: Path) -> int:
    """Run one part in this process; append its rows to the file. Returns 0 if it came to its end."""

    def put(line: dict[str, Any]) -> None:
        with file.open("a") as out:
            out.write(json.dumps(line) + "\n")

    def emit(metric: str, value: float, unit: str, target: float | None, *, better: str = "lower") -> None:
        note(f"  {metric}: {value:.4g} {unit}" + ("" if target is None else f" (target {target:g})"))
        put(row(metric, value, unit, target, better=better))

    folder = Path(tempfile.mkdtemp(prefix=f"coder-bench-{name}-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        importlib.import_module(f"tests.bench.{PARTS[name].module}").run(options, folder, emit)
    except SkippedError as error:
        put({"skipped": {f"part {name}": str(error)}})
    except KeyboardInterrupt:
        put({"skipped": {f"part {name}": reason(TimeoutError("stopped at its limit"))}})
        return 1
    except BaseException as error:
        traceback.print_exc()
        put({"skipped": {f"part {name}": reason(error)}})
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell that starts us in the background ignores the first
        signal.signal(number, signal.default_int_handler)
    _set(1, signal.SIGINT)  # PR_SET_PDEATHSIG
    given = json.loads(sys.argv[2])
    sys.exit(run_part(sys.argv[1], Options(**{**given, "parts": tuple(given["parts"])}), Path(sys.argv[3])))
