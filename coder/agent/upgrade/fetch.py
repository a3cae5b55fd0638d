"""Getting the server's program for this machine, and finding out whether it may replace ours.

In this order: its size, its checksum, its signature where a keyring was given, that it runs here and says the version
it should, and that it can take over what we would leave to it. Only what cannot be otherwise for these bytes on this
machine is a verdict (`UpgradeRefusedError`). Everything else may pass - a server whose replicas are of two versions, a
full disk, a slow start - and is looked at again (`UpgradeNotNowError`, or the error of the network or the disk).
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import trio

from coder.agent.upgrade.handover import FORMAT
from coder.base.child_env import child_env
from coder.base.errors import CoderError, explain_error
from coder.base.own_binary import own_binary
from coder.net.errors import NetError
from coder.net.http1 import HttpClient

MOST = 512 << 20
"""Ours: bytes of a program; the largest we build has a fifth of it."""
SILENCE = 60.0
"""Ours: seconds between two pieces of a download."""
FIRST_START = 120.0
"""Ours: seconds for `version` of a program that unpacks itself at its first start, on a slow machine."""
_FOREIGN = frozenset({errno.ENOEXEC, getattr(errno, "EBADARCH", errno.ENOEXEC)})
"A program for another kind of machine."
_FOREIGN_STATUS = 126
"What a shell says then; 127 is what shells and our own launcher say when something around the program is missing."
_BAD_SIGNATURE = 1
"""Status of gpgv when a signature of a known key is not one of these bytes; others say that it could not tell."""
_NAME = re.compile(r"coder-[0-9a-f]{16}")
_CHECKSUM = re.compile(r"([0-9a-f]{64})  \S+\n?")


class UpgradeRefusedError(CoderError):
    """A program whose bytes are those the server means, and which must never be used here."""

    def __init__(self, message: str) -> None:
        super().__init__("upgrade_refused", message)


class UpgradeNotNowError(CoderError):
    """No program that can be used, for a reason that may pass."""

    def __init__(self, message: str) -> None:
        super().__init__("upgrade_not_now", message)


async def fetch_program(
    client: HttpClient, name: str, version: str, digest: str, folder: Path, keyring: Path | None
) -> Path:
    """The verified program's file.

    Raises UpgradeRefusedError and UpgradeNotNowError, NetError or HttpError of the way to it, OSError of the folder.
    """
    path = folder / f"coder-{digest[:16]}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.is_file() or await trio.to_thread.run_sync(_digest, path) != digest:
        await _download(client, name, path, digest)
    if keyring is not None:
        await _check_signature(client, name, path, keyring)
    await _check_program(path, version)
    _replace_others(folder, path)
    return path


async def server_digest(client: HttpClient, name: str) -> str:
    """SHA-256 of the server's program, in hex. Raises UpgradeNotNowError, NetError or HttpError."""
    answer = await client.request("GET", f"/bin/{name}.sha256", expect=(200,))
    found = _CHECKSUM.fullmatch(answer.body[:512].decode("latin-1"))
    if found is None:
        raise UpgradeNotNowError("the server's checksum is none")
    return found[1]


async def _download(client: HttpClient, name: str, path: Path, digest: str) -> None:
    """To a name of its own first: what has the final name is whole."""
    beside = path.with_name(f"{path.name}.part")
    found, size = hashlib.sha256(), 0
    try:
        async with client.stream("GET", f"/bin/{name}") as answer:
            if answer.status != 200 or answer.headers.get("content-encoding"):
                raise NetError("protocol", f"/bin/{name} was answered with status {answer.status}")
            async with await trio.open_file(beside, "wb") as out, aclosing(answer.chunks()) as chunks:
                while chunk := await _next(chunks, name):
                    size += len(chunk)
                    if size > MOST:
                        raise UpgradeNotNowError(f"it is larger than {MOST >> 20} MiB")
                    found.update(chunk)
                    await out.write(chunk)
        if found.hexdigest() != digest:
            raise UpgradeNotNowError("its checksum is not the one the server names")
        beside.chmod(0o700)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


async def _next(chunks: AsyncIterator[bytes], name: str) -> bytes:
    """Empty at the end."""
    with trio.move_on_after(SILENCE):
        return await anext(chunks, b"")
    raise NetError("timeout", f"/bin/{name} stopped coming for {SILENCE:g} s")


async def _check_signature(client: HttpClient, name: str, path: Path, keyring: Path) -> None:
    answer = await client.request("GET", f"/bin/{name}.asc", expect=(200, 404))
    if answer.status == 404:
        raise UpgradeNotNowError("it is not signed, and --self-upgrade-keyring wants a signature")
    signature = path.with_name(f"{path.name}.asc")
    try:
        signature.write_bytes(answer.body)
        code, said = await _run(["gpgv", "--keyring", str(keyring.absolute()), str(signature), str(path)], SILENCE)
    finally:
        signature.unlink(missing_ok=True)
    if code == _BAD_SIGNATURE:
        raise UpgradeRefusedError(f"its signature is bad: {_last_line(said)}")
    if code != 0:
        raise UpgradeNotNowError(f"its signature cannot be checked with {keyring}: {_last_line(said)}")


async def _check_program(path: Path, version: str) -> None:
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
                env=child_env(),
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


def _replace_others(folder: Path, path: Path) -> None:
    """Takes programs of upgrades before away and leaves their names to the one that runs.

    Shells were told the name of the program that started them, and outlive it: git asks there for a password. When
    ours is not of this folder no shell of theirs lives, and the names go, too.
    """
    own = own_binary()
    runs = own.name if own is not None and own.resolve().parent == folder.resolve() else ""
    for old in folder.glob("coder-*"):
        if old.name in {path.name, runs}:
            continue
        if not runs or not _NAME.fullmatch(old.name):
            old.unlink(missing_ok=True)
            continue
        link = folder / "link.part"
        link.unlink(missing_ok=True)
        link.symlink_to(runs)
        link.replace(old)  # at once: git may start it at any time


def reason_of(error: BaseException) -> str:
    """One line for a log."""
    return explain_error(error).split("\n")[0]
