"""Directory of each job, private to its user, removed after every outcome; and recovery after a killed daemon.

A job's directory holds a lock while its daemon lives, and a note with the job's id. A starting daemon searches for
directories without a held lock, and recovers the state of the job that was running when its predecessor was killed.
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

_LOCK_FILE, _NOTE = "lock", "job.json"
_STOP_TIMEOUT = 12.0
"Seconds terraform has to end by itself: slightly more than its guard grants."
_STALE_SECONDS = 7 * 86400
"Seconds after which a directory of another, vanished daemon is removed."


@contextmanager
def job_directory(root: Path, *, job_id: str = "", kind: str = "", daemon: str = "") -> Iterator[Path]:
    """Create a fresh 0700 directory below `root`; remove it with its content afterwards.

    Raises CoderError `work_dir` when the disk does not allow it.
    """
    folder = root / f"job-{uuid.uuid4().hex}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        lock = (folder / _LOCK_FILE).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / _NOTE).write_text(json.dumps({"job_id": job_id, "kind": kind, "daemon": daemon}))
    except OSError as problem:
        shutil.rmtree(folder, ignore_errors=True)
        raise CoderError(
            "work_dir",
            f"cannot create a job directory below {root}: {problem.strerror}",
            "Free some disk space or choose another --cache-dir.",
        ) from problem
    try:
        yield folder
    finally:
        _remove(folder)
        lock.close()


@dataclass(frozen=True, slots=True)
class Leftover:
    """Job whose daemon was killed."""

    folder: Path
    job_id: str
    kind: str
    state: bytes

    def remove(self) -> None:
        _remove(self.folder)


def leftovers(root: Path, daemon: str) -> list[Leftover]:
    """Return the abandoned directories of `daemon`; stop their processes.

    Old ones of other daemons are removed, too. Blocks while terraform ends: not for the main thread.
    """
    result: list[Leftover] = []
    for folder in sorted(root.glob("job-*")):
        job_note = _read_note(folder)
        if job_note is None or not _is_abandoned(folder):
            continue
        if job_note.get("daemon") != daemon:
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                _remove(folder)
            continue
        _stop_processes(folder)
        result.append(Leftover(folder, job_note["job_id"], job_note.get("kind", ""), read_state(folder / STATE_PATH)))
    return result


def _read_note(folder: Path) -> dict[str, str] | None:
    try:
        job_note = json.loads((folder / _NOTE).read_text())
    except (OSError, ValueError):
        return None
    return job_note if isinstance(job_note, dict) and job_note.get("job_id") else None


def _is_abandoned(folder: Path) -> bool:
    try:
        with (folder / _LOCK_FILE).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # its daemon lives, or access is denied
    return True


def _stop_processes(folder: Path) -> None:
    """Stop the processes in a directory: a terraform that outlived its daemon cannot report its result.

    It was interrupted when its daemon died (terraform/process.py), and may still be writing its state.
    """
    until = time.monotonic() + _STOP_TIMEOUT
    while _processes_in(folder) and time.monotonic() < until:
        time.sleep(0.05)
    for number in _processes_in(folder):
        with suppress(OSError):  # already exited, or not permitted
            os.kill(number, signal.SIGKILL)


def _processes_in(folder: Path) -> list[int]:
    result, resolved = [], folder.resolve()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The link's text suffices: resolving the path would wait for the disk of another user's shell.
            if (entry / "cwd").readlink().is_relative_to(resolved):
                result.append(int(entry.name))
        except OSError:
            continue  # exited, or not permitted
    return result


def _remove(folder: Path) -> None:
    def make_writable(_function: object, path: str, _info: object) -> None:
        # Provider caches and git create read-only directories; remaining failures are left for the next start.
        try:
            Path(path).parent.chmod(0o700)
            Path(path).unlink(missing_ok=True)
        except OSError as problem:
            _log.warn("a file of a finished job could not be removed", path=path, error=problem)

    shutil.rmtree(folder, onerror=make_writable)
