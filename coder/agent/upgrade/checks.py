"""Checks whether a program may replace the running one: its bytes, its signature where a keyring is configured, that it
runs here with the expected version, and that it can take over the handover state."""

from __future__ import annotations

import errno
import hashlib
import json
import signal
import subprocess
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, on_disk
from coder.agent.platform import system
from coder.agent.upgrade.folder import ensure_private
from coder.agent.upgrade.handover import FORMAT
from coder.agent.upgrade.outcomes import UpgradeNotNowError, UpgradeRefusedError
from coder.base.child_env import child_env
from coder.base.errors import CoderError

FIRST_START_TIMEOUT = 120.0
"""Seconds (ours) for `version` of a program that unpacks itself at its first start, on a slow machine."""
SIGNATURE_TIMEOUT = 60.0
"""Seconds (ours) for gpgv."""
MAX_OUTPUT = 1 << 20
"""Bytes of a program's output (ours) that are read; a good program's answers have less than one kilobyte."""
_PIPE_GRACE = 1.0
"Seconds until the output of a program that has exited is complete."
_FOREIGN_ERRNOS = frozenset({errno.ENOEXEC, getattr(errno, "EBADARCH", errno.ENOEXEC)})
"errno values for a program of another platform."
_FOREIGN_STATUS = 126
"""Exit status of a shell in that case; 127 is the status of shells and our own launcher when a file around the program
is missing."""
_BAD_SIGNATURE = 1
"""Status of gpgv when a signature of a known key does not match these bytes; other statuses mean that it could not
decide."""


async def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex. Raises OSError."""
    return await on_disk(_digest, path)


async def check_again(folder: Path, path: Path, version: str, digest: str) -> None:
    """Check again that a verified program is unchanged and still runs: disks fill up, and caches are cleaned.

    Raises UpgradeNotNowError, because these bytes were good before and a failure is no verdict on them; OSError.
    """
    await on_disk(ensure_private, folder)
    if await digest_of(path) != digest:
        raise UpgradeNotNowError("its bytes have changed since it was verified")
    try:
        await check_program(path, version)
    except UpgradeRefusedError as error:
        raise UpgradeNotNowError(error.message) from error


async def check_signature(signature: Path, path: Path, keyring: Path) -> None:
    code, output = await _run(
        ["gpgv", "--keyring", str(keyring.absolute()), str(signature), str(path)], SIGNATURE_TIMEOUT
    )
    if code == _BAD_SIGNATURE:
        raise UpgradeRefusedError(f"its signature is bad: {_last_line(output)}")
    if code != 0:
        raise UpgradeNotNowError(f"its signature cannot be checked with {keyring}: {_last_line(output)}")


async def check_program(path: Path, version: str) -> None:
    code, output = await _run([str(path), "version", "--output", "json"], FIRST_START_TIMEOUT)
    try:
        reported = str(json.loads(output)["version"]) if code == 0 else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        reported = ""
    if not reported:
        raise _failed(code, f"it does not run here: {_last_line(output) or f'status {code}'}")
    if reported != version:
        raise UpgradeNotNowError(f"it is {reported}, and the server is {version}")
    code, output = await _run([str(path), "agent", f"--can-take-over={FORMAT}"], FIRST_START_TIMEOUT)
    if code != 0:
        raise _failed(code, f"it cannot take over from this one: {_last_line(output) or f'status {code}'}")


def _failed(code: int, reason: str) -> CoderError:
    """Return a verdict when the program itself exited with this code, or the processor cannot run it.

    A killed program, or one that cannot start because something is missing (127), may succeed later.
    """
    is_program_fault = 0 <= code <= _FOREIGN_STATUS or code in {-signal.SIGILL, 128 + signal.SIGILL}
    return UpgradeRefusedError(reason) if is_program_fault else UpgradeNotNowError(reason)


async def _run(argv: list[str], seconds: float) -> tuple[int, str]:
    """Return exit status and output of a command. Raises UpgradeNotNowError when it cannot be started now, does not
    exit, or prints without end."""
    try:
        process = await trio.lowlevel.open_process(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Run this program itself, not a running command server; and leave no command server behind.
            env=child_env({"CODER_NO_COMMAND_SERVER": "1"}),
            **system.START,
        )
    except OSError as error:
        if error.errno in _FOREIGN_ERRNOS:
            return _FOREIGN_STATUS, f"{argv[0]}: {error.strerror}"
        raise UpgradeNotNowError(f"{argv[0]} cannot be started: {error.strerror}") from error
    output = bytearray()
    try:
        with trio.fail_after(seconds):
            await _read_until_exit(process, output)
    except trio.TooSlowError as error:
        raise UpgradeNotNowError(f"{argv[0]} did not finish within {seconds:g} s") from error
    finally:
        await _end(process)
    if len(output) > MAX_OUTPUT:
        raise UpgradeNotNowError(f"{argv[0]} printed more than {MAX_OUTPUT >> 20} MiB")
    assert process.returncode is not None  # noqa: S101 - it was waited for
    return process.returncode, output.decode("utf-8", "replace")


async def _read_until_exit(process: trio.Process, output: bytearray) -> None:
    """Read until the program's exit, or more than MAX_OUTPUT bytes. Programs that it left behind may hold its output
    open: they get `_PIPE_GRACE` seconds."""
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - requested
    async with trio.open_nursery() as nursery:

        async def close_after_exit() -> None:
            await process.wait()
            await trio.sleep(_PIPE_GRACE)
            nursery.cancel_scope.cancel()

        nursery.start_soon(close_after_exit)
        while len(output) <= MAX_OUTPUT and (chunk := await pipe.receive_some()):
            output += chunk
        if len(output) <= MAX_OUTPUT:
            await process.wait()
        nursery.cancel_scope.cancel()


async def _end(process: trio.Process) -> None:
    """Kill the program with everything that it started in its group, and wait for its exit, even when cancelled."""
    with trio.CancelScope(deadline=trio.current_time() + DISK_TIMEOUT, shield=True):
        system.kill_group(process.pid, system.KILL)
        await process.wait()
        if process.stdout is not None:
            await process.stdout.aclose()


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
