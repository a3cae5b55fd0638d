"""One directory per job, for its owner only, gone after every outcome; and what a killed daemon left behind.

A job's directory holds a lock while its daemon lives and a note whose job it is. A daemon that starts looks for
directories nobody holds, and gets back the state of the job that was running when its predecessor was killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.provisionerd.executors.contract import STATE_PATH, read_state

_log = get_logger("provisionerd.workdir")

_LOCK, _NOTE = "lock", "job.json"
_PATIENCE = 12.0
"Seconds terraform gets to end by itself: a little more than its guard gives it."
_STALE = 7 * 86400
"Seconds after which a directory of another daemon that never came back is removed."


@contextmanager
def job_directory(root: Path, *, job_id: str = "", kind: str = "", daemon: str = "") -> Iterator[Path]:
    """Makes a fresh 0700 directory below `root` and removes it with everything in it.

    Raises CoderError `work_dir` when the disk does not allow it.
    """
    folder = root / f"job-{uuid.uuid4().hex}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        lock = (folder / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / _NOTE).write_text(json.dumps({"job_id": job_id, "kind": kind, "daemon": daemon}))
    except OSError as problem:
        shutil.rmtree(folder, ignore_errors=True)
        raise CoderError(
            "work_dir",
            f"cannot make a job directory below {root}: {problem.strerror}",
            "Free some disk space or choose another --cache-dir.",
        ) from problem
    try:
        yield folder
    finally:
        _remove(folder)
        lock.close()


@dataclass(frozen=True, slots=True)
class Leftover:
    """A job whose daemon was killed."""

    folder: Path
    job_id: str
    kind: str
    state: bytes

    def remove(self) -> None:
        _remove(self.folder)


def leftovers(root: Path, daemon: str) -> list[Leftover]:
    """Directories of `daemon` that nobody works in any more; what still runs in them is stopped.

    Old ones of other daemons are removed on the way. Blocks while terraform ends: not for the main thread.
    """
    found: list[Leftover] = []
    for folder in sorted(root.glob("job-*")):
        note = _read_note(folder)
        if note is None or not _is_abandoned(folder):
            continue
        if note.get("daemon") != daemon:
            if time.time() - folder.stat().st_mtime > _STALE:
                _remove(folder)
            continue
        _stop_processes(folder)
        found.append(Leftover(folder, note["job_id"], note.get("kind", ""), read_state(folder / STATE_PATH)))
    return found


def _read_note(folder: Path) -> dict[str, str] | None:
    try:
        note = json.loads((folder / _NOTE).read_text())
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and note.get("job_id") else None


def _is_abandoned(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # its daemon lives, or it is none of ours
    return True


def _stop_processes(folder: Path) -> None:
    """Ends what still runs in a directory: a terraform that survived its daemon has nobody to report to.

    It was interrupted when its daemon died (terraform/process.py), and may still be writing its state.
    """
    until = time.monotonic() + _PATIENCE
    while _processes_in(folder) and time.monotonic() < until:
        time.sleep(0.05)
    for number in _processes_in(folder):
        with suppress(OSError):  # gone just now, or not ours
            os.kill(number, signal.SIGKILL)


def _processes_in(folder: Path) -> list[int]:
    found, place = [], folder.resolve()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # As the kernel says it: a look at the place itself would wait for whatever disk somebody's shell is on.
            if (entry / "cwd").readlink().is_relative_to(place):
                found.append(int(entry.name))
        except OSError:
            continue  # gone, or not ours to look at
    return found


def _remove(folder: Path) -> None:
    def make_writable(_function: object, path: str, _info: object) -> None:
        # Provider caches and git make read-only directories; whatever still fails is left for the next start.
        try:
            Path(path).parent.chmod(0o700)
            Path(path).unlink(missing_ok=True)
        except OSError as problem:
            _log.warn("a file of a finished job could not be removed", path=path, error=problem)

    shutil.rmtree(folder, onerror=make_writable)
