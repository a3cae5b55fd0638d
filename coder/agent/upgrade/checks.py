"""Whether a program may replace ours: its bytes, its signature where a keyring was given, that it runs here and says
the version it should, and that it can take over what we would leave to it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import signal
import subprocess
from pathlib import Path

import trio

from coder.agent.disk import on_disk
from coder.agent.upgrade.folder import make_own
from coder.agent.upgrade.handover import FORMAT
from coder.agent.upgrade.outcomes import UpgradeNotNowError, UpgradeRefusedError
from coder.base.child_env import child_env
from coder.base.errors import CoderError

FIRST_START = 120.0
"""Ours: seconds for `version` of a program that unpacks itself at its first start, on a slow machine."""
SIGNATURE_CHECK = 60.0
"""Ours: seconds for gpgv."""
_FOREIGN = frozenset({errno.ENOEXEC, getattr(errno, "EBADARCH", errno.ENOEXEC)})
"A program for another kind of machine."
_FOREIGN_STATUS = 126
"What a shell says then; 127 is what shells and our own launcher say when something around the program is missing."
_BAD_SIGNATURE = 1
"""Status of gpgv when a signature of a known key is not one of these bytes; others say that it could not tell."""


async def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hex. Raises OSError."""
    return await on_disk(_digest, path)


async def check_again(folder: Path, path: Path, version: str, digest: str) -> None:
    """What was verified a while ago still is what it was, and still runs: disks fill up, and caches are cleaned.

    Raises UpgradeNotNowError: these bytes were good before, so this is no verdict on them. OSError.
    """
    await on_disk(make_own, folder)
    if await digest_of(path) != digest:
        raise UpgradeNotNowError("it is not what was verified any more")
    try:
        await check_program(path, version)
    except UpgradeRefusedError as error:
        raise UpgradeNotNowError(error.message) from error


async def check_signature(signature: Path, path: Path, keyring: Path) -> None:
    code, said = await _run(["gpgv", "--keyring", str(keyring.absolute()), str(signature), str(path)], SIGNATURE_CHECK)
    if code == _BAD_SIGNATURE:
        raise UpgradeRefusedError(f"its signature is bad: {_last_line(said)}")
    if code != 0:
        raise UpgradeNotNowError(f"its signature cannot be checked with {keyring}: {_last_line(said)}")


async def check_program(path: Path, version: str) -> None:
    code, said = await _run([str(path), "version", "--output", "json"], FIRST_START)
    try:
        told = str(json.loads(said)["version"]) if code == 0 else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        told = ""
    if not told:
        raise _failed(code, f"it does not run here: {_last_line(said) or f'status {code}'}")
    if told != version:
        raise UpgradeNotNowError(f"it is {told}, and the server is {version}")
    code, said = await _run([str(path), "agent", f"--can-take-over={FORMAT}"], FIRST_START)
    if code != 0:
        raise _failed(code, f"it cannot take over from this one: {_last_line(said) or f'status {code}'}")


def _failed(code: int, reason: str) -> CoderError:
    """A verdict when the program itself ended so, or the processor does not know it.

    What is killed, or cannot be started for want of something (127), may do better another time.
    """
    own = 0 <= code <= _FOREIGN_STATUS or code in {-signal.SIGILL, 128 + signal.SIGILL}
    return UpgradeRefusedError(reason) if own else UpgradeNotNowError(reason)


async def _run(argv: list[str], seconds: float) -> tuple[int, str]:
    """Exit status and output of a command. Raises UpgradeNotNowError when it cannot be started now or does not end."""
    try:
        with trio.fail_after(seconds):
            done = await trio.run_process(
                argv,
                stdin=subprocess.DEVNULL,
                capture_stdout=True,
                stderr=subprocess.STDOUT,
                check=False,
                # This program is asked, no server of commands in its place; and it leaves none behind.
                env=child_env({"CODER_NO_COMMAND_SERVER": "1"}),
            )
    except OSError as error:
        if error.errno in _FOREIGN:
            return _FOREIGN_STATUS, f"{argv[0]}: {error.strerror}"
        raise UpgradeNotNowError(f"{argv[0]} cannot be started: {error.strerror}") from error
    except trio.TooSlowError as error:
        raise UpgradeNotNowError(f"{argv[0]} gave no answer within {seconds:g} s") from error
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
