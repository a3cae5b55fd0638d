"""Run a program and restart it when a Python source below a folder changes: `reload.py FOLDER PROGRAM …`.

It polls modification times twice a second: no dependency, and fast enough for a few hundred files.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

PAUSE = 0.5
GRACE = 15.0
"""Seconds for a server to close its database before it is killed."""


def newest(folder: Path) -> float:
    """Return the latest modification time below the folder; files deleted meanwhile are ignored."""
    latest = 0.0
    for path in folder.rglob("*.py"):
        with contextlib.suppress(FileNotFoundError):
            latest = max(latest, path.stat().st_mtime)
    return latest


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(folder: Path, command: list[str]) -> int:
    while True:
        seen = newest(folder)
        process = subprocess.Popen(command)
        try:
            while newest(folder) <= seen:
                time.sleep(PAUSE)
                if process.poll() is not None and newest(folder) <= seen:
                    print("the server ended; it starts again with the next change", file=sys.stderr)
                    while newest(folder) <= seen:
                        time.sleep(PAUSE)
        except KeyboardInterrupt:
            stop(process)
            return 0
        if process.poll() is None:
            print("a source changed: restarting", file=sys.stderr)
            stop(process)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
