"""Replacement of the installed program: staged beside it, verified, tried, and renamed in one step.

Until the last rename nothing that the installed program needs is touched, so a failure at any point leaves it as it
was. The previous program stays as `coder.previous`, with a record of what the upgrade did.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from coder.base.atomic_file import write_atomically
from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.release.signature import PublicKey, verify_file
from coder.cli.core.edition import is_windows

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
    "Backup of the database before the upgrade; empty without one."


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
        return Record(str(found["version"]), str(found["replaced_by"]), str(found.get("backup", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


@contextlib.contextmanager
def stage(program: Path) -> Iterator[Path]:
    """Make a private folder beside the program, on its file system, for the block; one upgrade at a time.

    Raises CoderError `upgrade_not_permitted`, `upgrade_running`, `upgrade_failed`.
    """
    with unchanged_on_failure(), _locked(program.parent):
        for leftover in program.parent.glob(f"{_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=program.parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def unchanged_on_failure() -> Iterator[None]:
    """Convert a failed operation on files to CoderError."""
    try:
        yield
    except PermissionError as error:
        raise CoderError(
            "upgrade_not_permitted",
            f"this user may not replace the program: {error.filename or 'permission denied'}. {_UNCHANGED}",
            "Run the command as the owner of the program's folder, for example with sudo.",
        ) from error
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        raise CoderError(
            "upgrade_failed",
            f"the upgrade failed: {name}{error.strerror or type(error).__name__}. {_UNCHANGED}",
            "Free space, or mend the folder, and run it again.",
        ) from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder itself, so that no lock file stays; Windows keeps a running program from being replaced twice."""
    if is_windows():
        yield
        return
    import fcntl

    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(folder))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CoderError("upgrade_running", f"another upgrade of {folder} is running", "Wait until it ends.") from None
    try:
        yield
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes) -> None:
    """Write a staged file to the disk. Raises OSError with its name."""
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def check_staged(new: Path, version: str, keys: Sequence[PublicKey], *, slim: bool) -> None:
    """Verify a staged program and try it. Raise NotVerifiedError or CoderError `upgrade_failed`."""
    verify_file(new, keys)
    new.chmod(0o755)
    reported, is_slim = try_program(new)
    if reported != version:
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


def swap(new: Path, program: Path, record: Record) -> None:
    """Keep the program as the previous one and put `new` in its place. Raises OSError; the program is then as before.

    Processes that run the old program keep its file, so a program in use is no obstacle.
    """
    _copy_rights(program, new)
    previous = previous_path(program)
    text = json.dumps(asdict(record)) + "\n"
    if is_windows():
        # A running .exe can be renamed and not be overwritten.
        previous.unlink(missing_ok=True)
        program.rename(previous)
        try:
            new.rename(program)
        except OSError:
            previous.rename(program)
            raise
        write_atomically(record_path(program), text, mode=0o644)
        return
    kept = new.with_name("kept")
    try:
        os.link(program, kept)
    except OSError:  # a file system without hard links
        shutil.copy2(program, kept)
        _copy_rights(program, kept)
    # In this order: a record of an upgrade that did not happen names the version that runs, and is harmless.
    write_atomically(record_path(program), text, mode=0o644)
    kept.replace(previous)
    new.replace(program)


def _copy_rights(source: Path, target: Path) -> None:
    """Give a file the mode, owner and capabilities of another; owner and capabilities only as root."""
    info = source.stat()
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        os.chown(target, info.st_uid, info.st_gid)
    target.chmod(stat.S_IMODE(info.st_mode))
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # most programs have none
            os.setxattr(target, "security.capability", os.getxattr(source, "security.capability"))
