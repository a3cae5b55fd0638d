"""A program at a terminal: typed to, and read from."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

PATIENCE = 60.0
"""Seconds of silence after which nothing more is expected."""


class Terminal:
    """A program behind a pseudoterminal of its own, as the leader of a session."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], *, columns: int = 100, rows: int = 40) -> None:
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        # No fork of this process: a test runner has threads, and a lock that one of them holds would be held in the
        # child for ever.
        self.process = subprocess.Popen(
            ["setsid", "--wait", "--ctty", *argv], env=dict(env), stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        self.seen = b""

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def expect(self, pattern: bytes | str) -> bytes:
        """What comes up to the end of the pattern, escape sequences and all."""
        wanted = pattern.encode() if isinstance(pattern, str) else pattern
        while not (found := re.search(wanted, self.seen)):
            assert self._read(), f"the terminal says nothing more; {wanted!r} is not in {self.seen!r}"
        came, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return came

    def rest(self) -> bytes:
        """Everything until the program has ended."""
        while self._read():
            pass
        came, self.seen = self.seen, b""
        return came

    def _read(self) -> bool:
        readable, _, _ = select.select([self.master], [], [], PATIENCE)
        try:
            came = os.read(self.master, 65536) if readable else b""
        except OSError:  # Linux says so when the other end is closed
            came = b""
        self.seen += came
        return bool(came)

    def code(self) -> int:
        """The exit code, once it has ended."""
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        os.close(self.master)
        self.process.kill()
        self.process.wait()


def plain(screen: bytes) -> str:
    """Without what moves, colours or ends lines oddly."""
    text = screen.decode("utf-8", "replace").replace("\r", "")
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)
