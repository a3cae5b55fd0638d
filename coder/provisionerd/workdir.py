"""One directory per job, for its owner only, gone after every outcome."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.log import get_logger

_log = get_logger("provisionerd.workdir")


@contextmanager
def job_directory(root: Path) -> Iterator[Path]:
    """Makes a fresh 0700 directory below `root` and removes it with everything in it.

    Raises CoderError `work_dir` when the disk does not allow it.
    """
    folder = root / f"job-{uuid.uuid4().hex}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except OSError as problem:
        raise CoderError(
            "work_dir",
            f"cannot make a job directory below {root}",
            "Free some disk space or choose another --cache-dir.",
        ) from problem
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    def make_writable(_function: object, path: str, _info: object) -> None:
        # Provider caches and git make read-only directories; whatever still fails is left for the next start.
        try:
            Path(path).parent.chmod(0o700)
            Path(path).unlink(missing_ok=True)
        except OSError as problem:
            _log.warn("a file of a finished job could not be removed", path=path, error=problem)

    shutil.rmtree(folder, onerror=make_writable)
