"""Programs of others, run off the loop with bounds: seconds, bytes of their output, and no process left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from coder.agent.disk import LOOK_TIME, Held, Threads, on_disk
from coder.agent.state import ContainerRefusedError
from coder.agent.workspace.children import end_group
from coder.base.groups import single_failure
from coder.base.threads import NoThreadError
from coder.domain.agents.sub_agents import MAX_TEXT

MAX_COMPLAINT = 4096
"""Ours: bytes kept of what a program said on standard error, its last ones; characters of a reason it gives."""
_THREADS = Threads(2)
"Of looks for programs, and into them: a folder that does not answer takes none of other looks."


class CommandError(ContainerRefusedError):
    """A program that could not be asked."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a program answered."""

    status: int
    output: bytes
    complaint: str

    def require(self, what: str) -> bytes:
        """Its output. Raises CommandError when it failed."""
        if self.status:
            raise CommandError(f"{what} failed: {self.complaint or f'it ended with code {self.status}'}")
        return self.output


def is_text(text: str) -> bool:
    """Whether others can have it: a command line, a message, a database."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def short_text(said: Mapping[str, Any], key: str) -> str:
    """A text that a program printed. What is none, or is longer than the server takes, is as if it were not there."""
    found = said.get(key)
    return found if isinstance(found, str) and len(found) <= MAX_TEXT else ""


def read_json_untrusted(answer: bytes) -> Any:
    """What a program printed; in it, what is no text for others is as if it were not there. Raises as `json.loads`."""
    return _texts(json.loads(answer))


def _texts(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _texts(value) for key, value in found.items() if is_text(key) and _is_good(value)}
    return [_texts(value) for value in found if _is_good(value)] if isinstance(found, list) else found


def _is_good(found: object) -> bool:
    return not isinstance(found, str) or is_text(found)


async def find_program(names: Sequence[str], env: Mapping[str, str]) -> str | None:
    """The first of them that commands with that environment find. A disk that does not answer has none."""

    def look() -> str | None:
        path = env.get("PATH", os.defpath)
        return next((found for name in names if (found := shutil.which(name, path=path))), None)

    with trio.move_on_after(LOOK_TIME), suppress(NoThreadError):
        return await on_disk(look, limiter=_THREADS)
    return None


async def ask(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    seconds: float,
    max_output: int,
    given: Path | bytes = b"",
    tell: Callable[[bytes], Awaitable[None]] | None = None,
) -> Said:
    """Runs a program to its end; `given` (bytes, or a file's) is its input, `tell` gets its standard error as it comes.

    Raises CommandError: it cannot be started, is too slow, or says too much.
    """
    name, until = Path(argv[0]).name, trio.current_time() + seconds
    try:
        with trio.fail_at(until):
            # The program reads the file itself: of ours no thread is left that still reads what has to be closed.
            source = await on_disk(_open, given, limiter=_THREADS) if isinstance(given, Path) else None
    except trio.TooSlowError as error:
        raise CommandError(f"{given!s} could not be opened within {seconds:.0f} seconds") from error
    except OSError as error:
        raise CommandError(f"{given!s} cannot be read: {error.strerror}") from error
    try:
        process = await trio.lowlevel.open_process(
            list(argv),
            stdin=subprocess.PIPE if source is None else source.descriptor,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"{name} cannot be started: {error.strerror}") from error
    except ValueError as error:  # a word that no command line can have
        raise CommandError(f"{name} cannot be started: {error}") from error
    finally:
        if source is not None:
            source.close()
    talk = _Talk(process, max_output, tell)
    try:
        with single_failure(), trio.fail_at(until):
            await talk.run(given if isinstance(given, bytes) else b"")
            if talk.too_much:
                raise CommandError(f"{name} said more than {max_output} bytes")
            status = await process.wait()
    except trio.TooSlowError as error:
        raise CommandError(f"{name} gave no answer within {seconds:.0f} seconds") from error
    except (OSError, trio.BrokenResourceError) as error:
        raise CommandError(f"{name} could not be talked with: {error}") from error
    finally:
        await end_group(process)
    return Said(status, bytes(talk.output), talk.complaint.decode("utf-8", "replace").strip())


class _Talk:
    """The three pipes of one program."""

    def __init__(self, process: trio.Process, max_output: int, tell: Callable[[bytes], Awaitable[None]] | None) -> None:
        self._process, self._max, self._tell = process, max_output, tell
        self.output, self.complaint = bytearray(), bytearray()
        self.too_much = False

    async def run(self, given: bytes) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._give, given)
            nursery.start_soon(self._read_errors)
            assert self._process.stdout is not None  # noqa: S101 - asked for
            async with self._process.stdout as pipe:
                async for chunk in pipe:
                    self.output += chunk
                    if len(self.output) > self._max:
                        self.too_much = True
                        nursery.cancel_scope.cancel()

    async def _give(self, given: bytes) -> None:
        if self._process.stdin is None:  # it has a file
            return
        with suppress(trio.BrokenResourceError):  # it wanted no more
            async with self._process.stdin as pipe:
                await pipe.send_all(given)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - asked for
        async with self._process.stderr as pipe:
            async for chunk in pipe:
                self.complaint += chunk
                del self.complaint[:-MAX_COMPLAINT]
                if self._tell is not None:
                    await self._tell(bytes(chunk))


def _open(path: Path) -> Held:
    return Held(os.open(path, os.O_RDONLY))
