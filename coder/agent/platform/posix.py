"""Users, processes, terminals and files of Linux and macOS."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import pty
import pwd
import signal
import stat
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import trio

from coder.base.threads import NoThreadError

if TYPE_CHECKING:
    import asyncio.subprocess


class Start(TypedDict):
    """Arguments of subprocess calls for a group of its own."""

    start_new_session: bool


START: Start = {"start_new_session": True}
"""Arguments of subprocess calls that make a child the leader of its own group."""
KILL, HANGUP, TERMINATE = signal.SIGKILL, signal.SIGHUP, signal.SIGTERM
POLL_INTERVAL = 0.1
"""Seconds (ours) between polls of a child that nothing can wait for."""
HAS_SOCKET_FILES = True
"Whether the agent's socket for scripts can exist."
HAS_EXECVE = True
"Whether a newer program can continue in this process, with its children and their terminals."
PROGRAM_SUFFIX = ""
"Suffix of names of programs."
SHELL_OPTION = "-c"
_OVERFLOW_UID = 65534
"User id that a container reports for users outside of it."


# Users


def find_user() -> tuple[str, Path, str]:
    """Return name, home and shell by passwd; the environment fills in where a container has no passwd entry."""
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        home = os.environ.get("HOME", "/")
        return os.environ.get("USER", str(os.getuid())), Path(home), os.environ.get("SHELL", "/bin/sh")
    shell = entry.pw_shell if entry.pw_shell and Path(entry.pw_shell).exists() else "/bin/sh"
    if Path(shell).name in {"nologin", "false"}:
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    return entry.pw_name, Path(os.environ.get("HOME") or entry.pw_dir), shell


def user_variables(name: str, home: Path, shell: str) -> dict[str, str]:
    return {"HOME": str(home), "USER": name, "LOGNAME": name, "SHELL": shell}


def shell_command(shell: str, command: str | None) -> list[str]:
    """Return argv of a login shell, or of the shell with a command."""
    return [shell, "-c", command] if command else [shell, "-l"]


# Processes


def contain_children() -> None:
    """Do nothing: process groups end with the services that started them."""


def kill_group(pid: int, number: int) -> None:
    """Send a signal to the process group of a child."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # already exited


async def wait_for_child(pid: int) -> int:
    """Wait for the child `pid` and reap it; return the exit status as subprocess counts it (negative: the signal).

    Raises ChildProcessError when `pid` is not a child of this process, or was already reaped.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError as error:
        raise ChildProcessError(f"no child process {pid}") from error
    except (AttributeError, OSError):  # another system, or a kernel or sandbox without the call
        # Trio's threads may be abandoned: their results after the run has ended are dropped.
        limiter = trio.CapacityLimiter(math.inf)
        try:
            _, status = await trio.to_thread.run_sync(os.waitpid, pid, 0, abandon_on_cancel=True, limiter=limiter)
        except NoThreadError:
            status = await _poll_until_exited(pid)
    else:
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)  # noqa: ASYNC222 - it has exited: this does not block
    return os.waitstatus_to_exitcode(status)


async def _poll_until_exited(pid: int) -> int:
    """Poll until the child has exited; return its raw wait status."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 - does not block
        if ended:
            return status
        await trio.sleep(POLL_INTERVAL)


async def start_piped(
    argv: Sequence[str] | str, env: Mapping[str, str], cwd: Path, limit: int
) -> asyncio.subprocess.Process:
    """Start a command with three pipes, on the asyncio loop. Raises OSError."""
    import asyncio  # which an agent without SSH sessions never needs

    arguments = [argv] if isinstance(argv, str) else argv
    pipe = subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, limit=limit, start_new_session=True
    )


def close_outputs(process: asyncio.subprocess.Process) -> None:
    """Close our ends of a command's output; its further writes fail (EPIPE, SIGPIPE)."""
    for number in (1, 2):
        pipe = process._transport.get_pipe_transport(number)  # type: ignore[attr-defined]
        if pipe is not None:
            pipe.close()


def output_encoding(data: bytes | bytearray, *, is_cut: bool = False) -> str:
    """Return the encoding of a program's output."""
    return "utf-8"


def read_available(stream: trio.abc.ReceiveStream, size: int) -> bytes:
    """Return what a child's pipe has now; empty if nothing."""
    try:
        return os.read(stream.fileno(), size)  # type: ignore[attr-defined]
    except OSError:
        return b""  # nothing yet, or closed


# Terminals. A terminal is its master descriptor, which is non-blocking.


def spawn_terminal(
    argv: Sequence[str] | str, env: Mapping[str, str], cwd: Path, *, height: int, width: int
) -> tuple[subprocess.Popen[bytes], int, str]:
    """Start a program as the leader of a new session on a new terminal.

    Returns (process, master, terminal's name). Raises OSError when it cannot be started.
    """
    master, slave = pty.openpty()
    try:
        resize_terminal(slave, height or 24, width or 80)
        name = os.ttyname(slave)
        process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**env, "SSH_TTY": name},
            cwd=cwd,
            close_fds=True,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - one ioctl, no Python locks involved
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    os.set_blocking(master, False)
    return process, master, name


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def resize_terminal(master: int, height: int, width: int) -> None:
    """Set the terminal's size; the kernel sends SIGWINCH. Sizes are clamped to the call's range."""
    size = struct.pack("HHHH", *(max(0, min(number, 0xFFFF)) for number in (height, width)), 0, 0)
    fcntl.ioctl(master, termios.TIOCSWINSZ, size)


def read_terminal(master: int, size: int) -> bytes:
    """Return output; empty or OSError once every program has closed the terminal. Raises BlockingIOError."""
    return os.read(master, size)


def write_terminal(master: int, data: bytes) -> int:
    """Return the number of accepted bytes. Raises BlockingIOError, OSError."""
    return os.write(master, data)


def close_terminal(master: int) -> None:
    os.close(master)


# Newer programs of this agent


def adopt_inherited(number: int, flags: int) -> int:
    """Return the descriptor of what the parent process passed as `number`; children do not inherit it."""
    os.set_inheritable(number, False)
    return number


def start_successor(
    argv: Sequence[str], env: Mapping[str, str], variable: str, descriptor: int, outputs: tuple[int, int]
) -> subprocess.Popen[bytes]:
    """Start a program with a pipe as its input, and with `descriptor`, whose number for it is in `variable`. Raises
    OSError."""
    given = {**env, variable: str(descriptor)}
    stdout, stderr = outputs
    return subprocess.Popen(
        argv, env=given, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, pass_fds=(descriptor,)
    )


def why_not_private(folder: Path) -> str:
    """Return why other users could replace what is in a folder; "" if they cannot. Raises OSError."""
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        return f"{folder} is not a directory"
    if info.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{folder} is writable by other users"
    # A user who may rename a parent folder could replace this one, by either path to it.
    for above in {*folder.absolute().parents, *folder.resolve().parents}:
        info = above.stat()
        if info.st_uid not in {0, os.geteuid(), _OVERFLOW_UID}:
            return f"{above}, above {folder}, belongs to another user"
        if info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX:
            return f"{above}, above {folder}, is writable by everyone"
    return ""


def lock(descriptor: int) -> None:
    """Lock a file until its descriptor is closed. Raises BlockingIOError when another process holds it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def retire_program(path: Path, target: str) -> None:
    """Make the name of an earlier program a link to `target`: shells that outlive their agent store the name."""
    if path.is_symlink() and str(path.readlink()) == target:
        return
    link = path.with_name("link.part")
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    link.replace(path)  # atomic: git may start it at any time


# Files


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for state that outlives a user's programs (XDG base directories)."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    home = Path(environ.get("HOME") or "~").expanduser()
    return (state if state.is_absolute() else home / ".local" / "state") / "coder-agent"


def user_mark() -> str:
    """Return a text that names this user in file names."""
    return str(os.geteuid())


def is_own(status: os.stat_result) -> bool:
    """Return whether this user owns a file."""
    return status.st_uid == os.geteuid()


def others_can_replace(folder: os.stat_result) -> bool:
    """Return whether other users can replace another user's file in a folder."""
    return bool(folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX)


def is_protected(folder: os.stat_result) -> bool:
    """Return whether only this user and root can create files in a folder."""
    return folder.st_uid in {0, os.geteuid()} and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def close_to_others(path: Path, status: os.stat_result) -> None:
    """Leave a folder of this user to this user only."""
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)


def link_program(program: Path, link: Path) -> None:
    """Give a program another name, in one step."""
    if link.is_symlink() and link.readlink() == program:
        return
    new = link.with_name(f"{link.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(program)
    new.replace(link)


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    return os.pread(descriptor, size, offset)


def write_at(descriptor: int, data: bytes | memoryview, offset: int) -> int:
    return os.pwrite(descriptor, data, offset)


def sftp_path(path: bytes, base: bytes) -> bytes:
    """Return the local path of a path on the wire; `base` is the folder of relative ones."""
    return path if path.startswith(b"/") else base + b"/" + path


def wire_path(path: bytes) -> bytes:
    """Return the path on the wire of a local one."""
    return path


def load_average() -> float | None:
    """Return the runnable processes, averaged over one minute."""
    with contextlib.suppress(OSError):
        return os.getloadavg()[0]
    return None
