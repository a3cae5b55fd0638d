"""The command line in process: `coder …` run in a thread of the test, its streams caught.

    result = await run_cli(["templates", "list"], home=tmp_path, env={...})
    result.code, result.stdout, result.stderr

Only what the command's own thread prints is caught: a server in the same process keeps its streams.
"""

from __future__ import annotations

import io
import os
import sys
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
