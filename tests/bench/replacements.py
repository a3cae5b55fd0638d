"""How long sessions pause while the processes of a server are replaced.

A server of several processes on loopback, one workspace, and two sessions that write a line every 10 ms: one by the
relay, one on a direct path. The pause is the longest time between two of its lines, so it contains what else the
machine did.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench._workspace import program
from tests.bench.first import Place, end, note, prepare, row, wait

REPLACEMENTS, QUICK_REPLACEMENTS = 20, 3
DONE = "all processes were replaced"
PATHS = {"relayed": 3, "direct": 1}
"""Paths of the sessions, and the target of their pauses in seconds."""


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench replacements`."""
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    place = Place(program(folder), folder)
    place.env |= {"CODER_PROCESSES": "2", "CODER_NO_COMMAND_SERVER": "1"}
    try:
        with place.server():
            prepare(place)
            with place.agent():
                return _rows(place, QUICK_REPLACEMENTS if quick else REPLACEMENTS), {}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rows(place: Place, count: int) -> list[dict[str, Any]]:
    with _session(place, "relayed") as relayed, _session(place, "direct") as direct:
        took = [_replace(place, number) for number in range(1, count + 1)]
        sessions = {"relayed": relayed, "direct": direct}
        rows = [row("replacement of all processes, longest", max(took), "s", None)]
        for name, session in sessions.items():
            rows.append(row(f"pause of a {name} session, longest", session.longest, "s", PATHS[name]))
    for name, session in sessions.items():
        rows.append(row(f"lines lost of a {name} session", session.lost, "lines", 0))
    return rows


def _replace(place: Place, number: int) -> float:
    note(f"replacement {number} …")
    log, began = place.folder / "server.log", time.monotonic()
    os.kill(_supervisor(place), signal.SIGHUP)
    wait(lambda: log.read_text(errors="replace").count(DONE) == number, 180)
    return time.monotonic() - began


def _supervisor(place: Place) -> int:
    """Process id of our child that is the server."""
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if place.address.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return int(pid)
    raise ProcessLookupError("the server has ended")


@dataclass
class _Session:
    """What has arrived of a session's lines."""

    lines: int = 0
    lost: int = 0
    longest: float = 0.0

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        last = None
        for line in process.stdout:
            now = time.monotonic()
            self.longest = max(self.longest, now - (last or now))
            self.lost += max(int(line) - self.lines - 1, 0)
            self.lines, last = int(line), now


@contextmanager
def _session(place: Place, path: str) -> Iterator[_Session]:
    """A session that writes numbers until the end of the block. Raises ChildProcessError where it ends early."""
    command = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done"
    env = {**place.env, "CODER_DISABLE_DIRECT_CONNECTIONS": str(path == "relayed").lower()}
    process = subprocess.Popen(
        [str(place.binary), "ssh", "ws", command],
        env=env,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    found = _Session()
    reader = threading.Thread(target=found.follow, args=(process,))
    reader.start()
    try:
        wait(lambda: found.lines > 100)  # a direct path has been found
        found.longest = 0.0
        yield found
        if process.poll() is not None:
            raise ChildProcessError(f"the {path} session ended with status {process.returncode}")
    finally:
        end(process)
        reader.join()
