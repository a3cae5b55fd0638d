"""Replacement of the installed program: staged beside it, verified, tried, and renamed in one step.

Until the last rename nothing that the installed program needs is touched, so a failure at any point leaves it as it
was. The previous program stays as `coder.previous`, with a record of what the upgrade did.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from coder.base.atomic_file import naming
from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.files.private_files import SHARING_VIOLATION, replace_file, when_free
from coder.cli.core.edition import is_windows
from coder.domain.agents.version_order import canonical

TRIAL_TIMEOUT = 120.0
"""Seconds (ours) for `version` of a program that unpacks itself at its first start, on a slow machine."""
_PREFIX, _PREVIOUS = ".coder-upgrade-", ".previous"
_UNCHANGED = "The installed program is unchanged."


@dataclass(frozen=True, slots=True)
class Record:
    """What the last upgrade did, for a rollback."""

    version: str
    "Version of the kept program."
    replaced_by: str
    backup: str = ""
    "Backup of the database before its schema moved; empty without one."
    schema: str = ""
    "Newest revision of the database's schema that the kept program knows; empty if unknown, or without a database."
    replaced_by_schema: str = ""
    "The same of the program that replaced it."


def previous_path(program: Path) -> Path:
    """Return the path of the program before the last upgrade."""
    name, ending = _name_parts(program)
    return program.with_name(f"{name}{_PREVIOUS}{ending}")


def installed_path(program: Path) -> Path:
    """Return the installed program, also for the path of the one before the last upgrade."""
    name, ending = _name_parts(program)
    return program.with_name(name.removesuffix(_PREVIOUS) + ending)


def record_path(program: Path) -> Path:
    return program.with_name(f"{_name_parts(program)[0]}{_PREVIOUS}.json")


def _name_parts(program: Path) -> tuple[str, str]:
    """Return the name and the ending of Windows' programs; a version in a name has dots as well."""
    is_exe = program.suffix.lower() == ".exe"
    return (program.stem, program.suffix) if is_exe else (program.name, "")


def read_record(program: Path) -> Record | None:
    """Return the record of the last upgrade; None without a readable one."""
    try:
        found = json.loads(record_path(program).read_text(encoding="utf-8"))
        others = (str(found.get(name, "")) for name in ("backup", "schema", "replaced_by_schema"))
        return Record(str(found["version"]), str(found["replaced_by"]), *others)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def identity(program: Path) -> tuple[int, int, int]:
    """Return what identifies a file's content as long as nothing rewrites it: device, inode, time of change in ns.
    Raises OSError."""
    info = program.stat()
    return info.st_dev, info.st_ino, info.st_mtime_ns


@contextlib.contextmanager
def stage(program: Path, expected: tuple[int, int, int]) -> Iterator[Path]:
    """Make a private folder beside the program, on its file system, for the block; one upgrade at a time.

    `expected` is the program's identity when the command began: the caller knows the version of that file only. Raises
    CoderError `upgrade_not_permitted`, `upgrade_running`, `upgrade_failed`.
    """
    with unchanged_on_failure(), _locked(program.parent):
        if identity(program) != expected:
            raise CoderError("upgrade_running", f"another upgrade replaced {program} meanwhile", "Run it again.")
        _require_owner(program)
        for leftover in program.parent.glob(f"{_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=program.parent))
        try:
            yield folder
        finally:
            if program.exists():  # else the folder has the only copy: a rename that Windows refused, and undoing it
                shutil.rmtree(folder, ignore_errors=True)


def _require_owner(program: Path) -> None:
    """Raise CoderError if the new program would change its owner: a folder may be writable for a group."""
    if not is_windows() and os.geteuid() not in {0, program.stat().st_uid}:
        raise CoderError(
            "upgrade_not_permitted",
            f"{program} belongs to another user. {_UNCHANGED}",
            "Run the command as the owner of the program, for example with sudo.",
        )


@contextlib.contextmanager
def unchanged_on_failure() -> Iterator[None]:
    """Convert a failed operation on files to CoderError, whose message says everything."""
    try:
        yield
    except PermissionError as error:
        raise _not_permitted(error) from None
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        raise CoderError(
            "upgrade_failed",
            f"the upgrade failed: {name}{error.strerror or type(error).__name__}. {_UNCHANGED}",
            "Free space, or mend the folder, and run it again.",
        ) from None


def _not_permitted(error: PermissionError) -> CoderError:
    """Return the error of a user without rights, or, on Windows, of a file that another program holds open."""
    if getattr(error, "winerror", None) == SHARING_VIOLATION:
        return CoderError(
            "upgrade_failed",
            f"another program holds {error.filename or 'a file'} open. {_UNCHANGED}",
            "Wait until your antivirus has read it, or end the other program, and run it again.",
        )
    way = "in a terminal as administrator" if is_windows() else "for example with sudo"
    return CoderError(
        "upgrade_not_permitted",
        f"this user may not replace the program: {error.filename or 'permission denied'}. {_UNCHANGED}",
        f"Run the command as the owner of the program's folder, {way}.",
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder itself, so that no lock file stays; Windows keeps a running program from being replaced twice."""
    if is_windows():
        yield
        return
    import fcntl

    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CoderError(
                "upgrade_running", f"another upgrade of {folder} is running", "Wait until it ends."
            ) from None
        yield
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes) -> None:
    """Write a staged file to the disk. Raises OSError with its name."""
    with naming(path), path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def check_staged(new: Path, version: str, *, slim: bool) -> None:
    """Try a staged program, whose bytes were verified. Raise CoderError `upgrade_failed`."""
    new.chmod(0o755)
    reported, is_slim = try_program(new)
    if canonical(reported) != canonical(version):
        raise CoderError(
            "upgrade_failed",
            f"the release {version} has the program of {reported}. {_UNCHANGED}",
            "The list or the mirror is wrong: use another --release-list.",
        )
    if is_slim and not slim:
        message = f"the release {version} has no program with the server for this machine. {_UNCHANGED}"
        raise CoderError("upgrade_failed", message, "Use a list with the whole release.")


def try_program(program: Path) -> tuple[str, bool]:
    """Start a program and return its version, and whether it is slim. Raise CoderError `upgrade_failed`."""
    try:
        done = subprocess.run(
            [str(program), "version", "--output", "json"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TRIAL_TIMEOUT,
            check=False,
            env=child_env({"CODER_NO_COMMAND_SERVER": "1"}),
        )
    except OSError as error:
        raise _does_not_start(error.strerror or type(error).__name__) from error
    except subprocess.TimeoutExpired:
        raise _does_not_start(f"it did not finish within {TRIAL_TIMEOUT:g} s") from None
    try:
        found = json.loads(done.stdout)
        return str(found["version"]), bool(found["slim"])
    except (ValueError, KeyError, TypeError, RecursionError):
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _does_not_start(lines[-1][:200] if lines else f"status {done.returncode}") from None


def _does_not_start(reason: str) -> CoderError:
    return CoderError(
        "upgrade_failed",
        f"the new program does not start here: {reason}. {_UNCHANGED}",
        "Is the release for this system and processor?",
    )


def swap(new: Path, program: Path, record: Record, *, is_rollback: bool = False) -> None:
    """Put `new`, in a folder of `stage`, in the program's place, and keep the program as the previous one. Raises
    OSError; all files are then as before.

    An upgrade keeps the program before it renames the new one over it, a rollback the other way round: a command that
    is killed in between leaves the version from which it started, or the one that it was to put back. Processes that
    run the old program keep its file, so a program in use is no obstacle.
    """
    folder = new.parent
    kept, text = folder / "kept", folder / "record"
    _copy_rights(program, new)
    link_or_copy(program, kept)
    write_file(text, f"{json.dumps(asdict(record))}\n".encode())
    text.chmod(0o644)
    steps = [(text, record_path(program)), (kept, previous_path(program)), (new, program)]
    with contextlib.ExitStack() as undo:
        for source, target in reversed(steps) if is_rollback else steps:
            saved = folder / f"saved-{target.name}"
            _replace(source, target, saved)
            undo.callback(_put_back, saved, target)
        undo.pop_all()
    _sync_folder(program.parent)


def _sync_folder(folder: Path) -> None:
    """Write the folder's names to the disk, where the system can do that."""
    if not is_windows():
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _replace(source: Path, target: Path, saved: Path) -> None:
    """Rename `source` to `target`, and keep the file that was there as `saved`, a path that does not exist."""
    if not os.path.lexists(target):
        replace_file(source, target)
        return
    if not is_windows():
        link_or_copy(target, saved)
        replace_file(source, target)
        return
    when_free(lambda: target.rename(saved))  # a running .exe can be renamed and not be overwritten
    try:
        replace_file(source, target)
    except OSError:
        replace_file(saved, target)
        raise


def _put_back(saved: Path, target: Path) -> None:
    if os.path.lexists(saved):
        replace_file(saved, target)
    else:
        when_free(target.unlink)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or, on a file system without hard links, copy it. `target` must not exist. Raises
    OSError."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):  # a system that follows symbolic links always
        copy_file(source, target)
        _copy_rights(source, target)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's content to the disk. Raises OSError with a name."""
    with naming(target), source.open("rb") as file, target.open("xb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())


def _copy_rights(source: Path, target: Path) -> None:
    """Give a file the mode, owner and capabilities of another; owner and capabilities only as root."""
    info = source.stat()
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        os.chown(target, info.st_uid, info.st_gid)
    target.chmod(stat.S_IMODE(info.st_mode))
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # most programs have none
            os.setxattr(target, "security.capability", os.getxattr(source, "security.capability"))
