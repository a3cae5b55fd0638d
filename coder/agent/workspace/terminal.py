"""Pseudo-terminals: open one, start a program on it, resize it. POSIX only."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path


def resize(descriptor: int, height: int, width: int) -> None:
    """Set the terminal's size; the kernel sends SIGWINCH. Sizes are clamped to the call's range."""
    size = struct.pack("HHHH", *(max(0, min(number, 0xFFFF)) for number in (height, width)), 0, 0)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, size)


def spawn(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, *, height: int, width: int
) -> tuple[subprocess.Popen[bytes], int, str]:
    """Start a program as the leader of a new session on a new terminal.

    Returns (process, master descriptor - non-blocking, terminal's name). Raises OSError when it cannot be started.
    """
    master, slave = pty.openpty()
    try:
        resize(slave, height or 24, width or 80)
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
