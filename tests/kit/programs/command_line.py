"""The command line in process, and any program at a pseudo-terminal.

    result = await run_cli(["templates", "list"], home=tmp_path, env={...})
    result.code, result.stdout, result.stderr

`run_cli` runs `coder …` in a thread of the test and captures only what that thread prints: a server in the same process
keeps its streams. `Terminal` starts a program at a terminal, types to it and reads from it.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import trio

from coder.cli.main import main
from coder.net.blocking import BlockingClient
from coder.net.request_log import REQUESTS


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    stdout: str
    stderr: str


class _ByThread:
    """A standard stream that is another one in one thread. No subclass of io's: those close themselves when they go."""

    def __init__(self, outside: Any, inside: Any) -> None:
        self._outside, self._inside = outside, inside
        self._thread = threading.get_ident()

    def _now(self) -> Any:
        return self._inside if threading.get_ident() == self._thread else self._outside

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now(), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())


@contextmanager
def _streams(stdin: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    before = sys.stdin, sys.stdout, sys.stderr
    texts = [  # as Python has them: what cannot be written is escaped in errors alone
        io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, write_through=True)
        for buffer, errors in ((out, "strict"), (err, "backslashreplace"))
    ]
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    sys.stdin = _ByThread(before[0], given)
    sys.stdout = _ByThread(before[1], texts[0])
    sys.stderr = _ByThread(before[2], texts[1])
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _environment(home: Path, env: Mapping[str, str]) -> Iterator[None]:
    before, folder = dict(os.environ), Path.cwd()
    for name in [name for name in os.environ if name.startswith(("CODER_", "XDG_"))]:
        del os.environ[name]
    os.environ.update({"HOME": str(home), **env})
    os.chdir(home)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _clients_closed() -> Iterator[None]:
    """Commands leave connection and request log to the end of the process, which here is not theirs."""
    made: list[BlockingClient] = []
    begin = BlockingClient.__init__

    def remember(self: BlockingClient, *given: Any) -> None:
        made.append(self)
        begin(self, *given)

    with mock.patch.object(BlockingClient, "__init__", remember):
        yield
    REQUESTS.listener, REQUESTS.last, REQUESTS.server_version = None, None, ""
    for client in made:
        client.close()


async def run_cli(words: Sequence[str], *, home: Path, env: Mapping[str, str] = {}, stdin: str = "") -> Result:
    """One at a time: working directory and environment are the process's."""

    def run() -> Result:
        with _environment(home, env), _streams(stdin) as (out, err), _clients_closed():
            code = main(words)
            return Result(code, out.getvalue().decode(), err.getvalue().decode())

    return await trio.to_thread.run_sync(run)


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
