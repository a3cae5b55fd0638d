"""External programs, run off the event loop with limits: seconds, bytes of output, and no process left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, OpenDescriptor, Threads, on_disk
from coder.agent.platform import system
from coder.agent.state import ContainerRefusedError
from coder.agent.workspace.children import end_group
from coder.base.exception_groups import single_failure
from coder.base.json_types import Json
from coder.base.threads import NoThreadError
from coder.domain.agents.sub_agents import MAX_TEXT

MAX_STDERR = 4096
"""Bytes (ours) kept of the end of a program's standard error, and characters of the reason it reports."""
_THREADS = Threads(2)
"Threads for PATH searches and opened input files: a folder that does not answer holds none of the shared threads."


class CommandError(ContainerRefusedError):
    """A program could not be run."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a program."""

    status: int
    output: bytes
    stderr_tail: str

    def require(self, action: str) -> bytes:
        """Return the output. Raises CommandError when the program failed."""
        if self.status:
            raise CommandError(f"{action} failed: {self.stderr_tail or f'it exited with code {self.status}'}")
        return self.output


def is_text(text: str) -> bool:
    """Return whether command lines, messages and the database can hold the text."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def short_text(document: Mapping[str, Json], key: str) -> str:
    """Return a text field of a program's output; "" when it is not a string or longer than the server accepts."""
    value = document.get(key)
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else ""


def read_json_untrusted(answer: bytes) -> Json:
    """Parse JSON that a program printed, without strings that `is_text` rejects. Raises as `json.loads`."""
    return _texts(json.loads(answer))


def _texts(document: Json) -> Json:
    if isinstance(document, dict):
        return {key: _texts(value) for key, value in document.items() if is_text(key) and _is_clean(value)}
    return [_texts(value) for value in document if _is_clean(value)] if isinstance(document, list) else document


def _is_clean(document: Json) -> bool:
    return not isinstance(document, str) or is_text(document)


async def find_program(names: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Return the path of the first of `names` on that environment's PATH; None when the disk does not answer."""

    def search() -> str | None:
        path = env.get("PATH", os.defpath)
        return next((executable for name in names if (executable := shutil.which(name, path=path))), None)

    with trio.move_on_after(DISK_TIMEOUT), suppress(NoThreadError):
        return await on_disk(search, limiter=_THREADS)
    return None


async def run_command(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    seconds: float,
    max_output: int,
    input_source: Path | bytes = b"",
    on_stderr: Callable[[bytes], Awaitable[None]] | None = None,
) -> CommandResult:
    """Run a program to its end with `input_source` (bytes or a path) as input; `on_stderr` receives standard error
    as it arrives.

    Raises CommandError when the program cannot be started, exceeds `seconds` or prints more than `max_output` bytes.
    """
    name, until = Path(argv[0]).name, trio.current_time() + seconds
    try:
        with trio.fail_at(until):
            # The program reads the file itself: no thread of ours can be left reading a descriptor that has to be
            # closed.
            source = await on_disk(_open, input_source, limiter=_THREADS) if isinstance(input_source, Path) else None
    except trio.TooSlowError as error:
        raise CommandError(f"{input_source!s} could not be opened within {seconds:.0f} seconds") from error
    except OSError as error:
        raise CommandError(f"{input_source!s} cannot be read: {error.strerror}") from error
    try:
        process = await trio.lowlevel.open_process(
            list(argv),
            stdin=subprocess.PIPE if source is None else source.descriptor,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            **system.START,
        )
    except OSError as error:
        raise CommandError(f"{name} cannot be started: {error.strerror}") from error
    except ValueError as error:  # an argument that no command line can hold
        raise CommandError(f"{name} cannot be started: {error}") from error
    finally:
        if source is not None:
            source.close()
    pipes = _Pipes(process, max_output, on_stderr)
    try:
        with single_failure(), trio.fail_at(until):
            await pipes.run(input_source if isinstance(input_source, bytes) else b"")
            if pipes.exceeded:
                raise CommandError(f"{name} printed more than {max_output} bytes")
            status = await process.wait()
    except trio.TooSlowError as error:
        raise CommandError(f"{name} did not finish within {seconds:.0f} seconds") from error
    except (OSError, trio.BrokenResourceError) as error:
        raise CommandError(f"{name} lost its pipes: {error}") from error
    finally:
        await end_group(process)
    return CommandResult(status, bytes(pipes.output), pipes.stderr_tail.decode("utf-8", "replace").strip())


class _Pipes:
    """Pipes to the three standard streams of one program."""

    def __init__(
        self, process: trio.Process, max_output: int, on_stderr: Callable[[bytes], Awaitable[None]] | None
    ) -> None:
        self._process, self._max, self._on_stderr = process, max_output, on_stderr
        self.output, self.stderr_tail = bytearray(), bytearray()
        self.exceeded = False

    async def run(self, input_source: bytes) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._feed, input_source)
            nursery.start_soon(self._read_errors)
            assert self._process.stdout is not None  # noqa: S101 - requested
            async with self._process.stdout as pipe:
                async for chunk in pipe:
                    self.output += chunk
                    if len(self.output) > self._max:
                        self.exceeded = True
                        nursery.cancel_scope.cancel()

    async def _feed(self, input_source: bytes) -> None:
        if self._process.stdin is None:  # the program reads a file
            return
        with suppress(trio.BrokenResourceError):  # the program closed its input
            async with self._process.stdin as pipe:
                await pipe.send_all(input_source)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - requested
        async with self._process.stderr as pipe:
            async for chunk in pipe:
                self.stderr_tail += chunk
                del self.stderr_tail[:-MAX_STDERR]
                if self._on_stderr is not None:
                    await self._on_stderr(bytes(chunk))


def _open(path: Path) -> OpenDescriptor:
    return OpenDescriptor(os.open(path, os.O_RDONLY))
