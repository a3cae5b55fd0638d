"""Directory of each job, private to its user, removed when the server accepted the job's end; and recovery.

A job's directory holds a lock while its daemon lives, a note with the job's id, and at the end the final report. A
starting daemon searches for directories without a held lock. It sends the report, or recovers the state of the job that
was running when its predecessor was killed.
"""

from __future__ import annotations

import errno
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

_LOCK_FILE, _NOTE, _REPORT = "lock", "job.json", "report.protobuf"
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
_STOP_TIMEOUT = 12.0
"Seconds terraform has to end by itself: slightly more than its guard grants."
_STALE_SECONDS = 7 * 86400
"Seconds after which a directory of another, vanished daemon is removed."


@dataclass(slots=True)
class JobDirectory:
    """Directory of a running job."""

    path: Path
    is_kept: bool = False
    """Whether the directory outlives the job, for the next daemon of this name."""

    def keep(self, report: bytes) -> None:
        """Keep the directory with the job's final report until `release`."""
        self.is_kept = True
        try:
            partial = self.path / f"{_REPORT}.partial"
            partial.write_bytes(report)
            partial.replace(self.path / _REPORT)
        except OSError as problem:  # the next daemon then recovers the state only
            _log.warn("the final report of a job could not be kept on the disk", path=self.path, error=problem)

    def release(self) -> None:
        """Let the directory be removed: the server knows the job's end."""
        self.is_kept = False


@contextmanager
def job_directory(root: Path, *, job_id: str = "", kind: str = "", daemon: str = "") -> Iterator[JobDirectory]:
    """Create a fresh 0700 directory below `root`; remove it with its content afterwards, unless it is kept.

    Raises CoderError `work_dir` when the disk does not allow it.
    """
    folder = root / f"job-{uuid.uuid4().hex}"
    lock = None
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        lock = (folder / _LOCK_FILE).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / _NOTE).write_text(json.dumps({"job_id": job_id, "kind": kind, "daemon": daemon}))
    except OSError as problem:
        if lock is not None:
            lock.close()
        _remove_new(folder)
        raise CoderError(
            "work_dir",
            f"cannot create a job directory below {root}: {problem.strerror}",
            "Free some disk space or choose another --cache-dir." if problem.errno not in _NO_DESCRIPTORS else "",
        ) from problem
    directory = JobDirectory(folder)
    try:
        yield directory
    finally:
        if not directory.is_kept:
            _remove(folder)
        lock.close()


@dataclass(frozen=True, slots=True)
class Leftover:
    """Job whose daemon was killed, or ended before the server accepted its final report."""

    folder: Path
    job_id: str
    kind: str
    state: bytes
    report: bytes = b""
    """Final report, if the job had ended."""

    @property
    def is_stale(self) -> bool:
        """Return whether the directory is so old that it is removed whatever the server answers."""
        return _is_stale(self.folder)

    def remove(self) -> None:
        _remove(self.folder)


def leftovers(root: Path, daemon: str) -> list[Leftover]:
    """Return the abandoned directories of `daemon`; stop their processes.

    Old ones of other daemons are removed, too. Blocks while terraform ends: not for the main thread. Raises OSError
    when this process has no descriptor left: a directory that cannot be read would count as another's, or as stateless.
    """
    result: list[Leftover] = []
    for folder in sorted(root.glob("job-*")):
        _require_descriptors()
        job_note = _read_note(folder)
        if job_note is None or not _is_abandoned(folder):
            continue
        if job_note.get("daemon") != daemon:
            if _is_stale(folder):
                _remove(folder)
            continue
        _stop_processes(folder)
        state, report = read_state(folder / STATE_PATH), _read_report(folder)
        result.append(Leftover(folder, job_note["job_id"], job_note.get("kind", ""), state, report))
    return result


def _require_descriptors() -> None:
    """Raises OSError when no further file can be opened."""
    with Path(os.devnull).open("rb"), Path(os.devnull).open("rb"):
        pass


def _is_stale(folder: Path) -> bool:
    return time.time() - folder.stat().st_mtime > _STALE_SECONDS


def _read_report(folder: Path) -> bytes:
    try:
        return (folder / _REPORT).read_bytes()
    except OSError:
        return b""


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


def _remove_new(folder: Path) -> None:
    """Remove a directory that got no job, without a descriptor: there may be none left."""
    with suppress(OSError):
        for name in (_NOTE, _LOCK_FILE):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _remove(folder: Path) -> None:
    def make_writable(_function: object, path: str, _info: object) -> None:
        # Provider caches and git create read-only directories; remaining failures are left for the next start.
        try:
            Path(path).parent.chmod(0o700)
            Path(path).unlink(missing_ok=True)
        except OSError as problem:
            _log.warn("a file of a finished job could not be removed", path=path, error=problem)

    shutil.rmtree(folder, onerror=make_writable)
    if folder.exists():
        _remove_by_path(folder)


def _remove_by_path(folder: Path) -> None:
    """Remove a directory with one descriptor at a time; `rmtree` needs one for each level."""
    with suppress(OSError):
        for parent, folders, files in os.walk(folder, topdown=False):
            for name in files:
                Path(parent, name).unlink(missing_ok=True)
            for name in folders:
                path = Path(parent, name)
                path.unlink() if path.is_symlink() else path.rmdir()
        folder.rmdir()
