"""Files over SSH (SFTP), as the agent's user sees them; relative paths start in the agent's directory.

A disk may be away for ever, and a name may be a pipe nobody writes to: so no system call on a file that could wait is
made on the event loop, where it would hold up every terminal of the workspace. asyncssh takes one request of a session
after the other, and so do the threads; what waits is that session alone.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence, Set
from contextlib import suppress
from functools import partial
from io import IOBase
from itertools import islice
from typing import IO, Any, TypeVar, TypeVarTuple, cast

import outcome
import trio
from trio_asyncio import trio_as_aio

from coder.agent.ssh.negotiation import take_longer_writes
from coder.agent.state import AgentState
from coder.agent.workspace.files import workdir
from coder.base.threads import NoThreadError
from coder.net.ssh_library import asyncssh

_Write = tuple[IO[bytes], int, bytes]
Found = TypeVar("Found")
Arguments = TypeVarTuple("Arguments")

THREADS = 32
"""Ours: sessions that wait for a disk at a time, apart from all other looks of the agent; others wait for them."""
MOST_READ = 4 << 20
"Bytes of one answer: what asyncssh tells clients that ask. A number is any client's word, for which nobody keeps room."
BEHIND = 2 << 20
"Ours: bytes of a session that are on their way to the disk, beyond which the client waits for it."
ENOUGH, PAUSE = 256 << 10, 0.005
"Ours: bytes of a session that are worth a thread, and the seconds it waits for so many. A close waits for nothing."
PIECES = 64
"Of a file that go to the system in one call; it takes 1,024 at most."
NAMES = 128
"Entries of a folder that are read at once: as many as asyncssh puts into one answer."
IN_THREADS = (
    "fsetstat",
    "fstat",
    "fstatvfs",
    "fsync",
    "link",
    "lsetstat",
    "lstat",
    "mkdir",
    "posix_rename",
    "readlink",
    "realpath",
    "remove",
    "rename",
    "rmdir",
    "setstat",
    "stat",
    "statvfs",
    "symlink",
)
"""Operations that are asyncssh's own, in a thread."""
NOT_OFFERED = frozenset({b"ranges@asyncssh.com"})
"""Extensions that only asyncssh knows and that look at the file by themselves: on the event loop, and before what was
written behind their back. Its clients do without."""

_wire = asyncssh.constants
_FLAGS = {
    _wire.FXF_APPEND: os.O_APPEND,
    _wire.FXF_CREAT: os.O_CREAT,
    _wire.FXF_TRUNC: os.O_TRUNC,
    _wire.FXF_EXCL: os.O_EXCL,
}
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
"Linux: a read that would wait for a disk is refused instead."


class DiskThreads:
    """Runs calls that may wait, of all sessions of a server.

    Through trio's task for a thread and its bridge to asyncio a call costs four times as much, a third of a transfer in
    pieces of 32 KiB.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(THREADS)

    async def run(self, do: Callable[[*Arguments], Found], *arguments: *Arguments) -> Found:
        """What `do` returns or raises, and OSError when there is no thread for it. Cancelled, it goes on until the disk
        answers, and is forgotten."""
        await self._free.acquire()
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        token = trio.lowlevel.current_trio_token()

        def deliver(result: outcome.Outcome[Found]) -> None:
            with suppress(trio.RunFinishedError):  # the agent has ended meanwhile
                token.run_sync_soon(self._done, future, result)

        try:
            trio.lowlevel.start_thread_soon(partial(do, *arguments), deliver)
        except NoThreadError:
            self._free.release()
            raise
        return await future

    def _done(self, future: asyncio.Future[Found], result: outcome.Outcome[Found]) -> None:
        self._free.release()
        if future.cancelled():
            return
        if isinstance(result, outcome.Error):
            future.set_exception(result.error)
        else:
            future.set_result(result.unwrap())


async def start_sftp(channel: asyncssh.SSHServerChannel[bytes], state: AgentState, threads: DiskThreads) -> Sftp:
    """For one session. Where it starts is looked up first: that is a question to a disk, too."""
    return Sftp(channel, state, threads, os.fsencode(await trio_as_aio(workdir)(state)))


class _Behind:
    """Writes of one session that were answered and are on their way to the disk, some at a time.

    A thread for each would cost more than the write. They stay in their order, everything else of the session waits for
    them, and what fails is said by the next write to the file, and by its close.
    """

    def __init__(self, threads: DiskThreads) -> None:
        self._threads = threads
        self._waiting: list[_Write] = []
        self._size = self._gathered = 0
        self._enough = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failed: dict[IO[bytes], OSError] = {}

    @property
    def is_empty(self) -> bool:
        return self._task is None

    async def put(self, file: IO[bytes], offset: int, data: bytes) -> None:
        """Waits where too much is on its way. Raises OSError for a file of which a write has failed."""
        self.check(file)
        self._waiting.append((file, offset, data))
        self._size += len(data)
        self._gathered += len(data)
        if self._task is None:
            self._task = asyncio.ensure_future(self._write())
        if self._gathered >= ENOUGH:
            self._enough.set()
        if self._size > BEHIND:
            await self.wait_written()

    async def wait_written(self) -> None:
        """Until all that was put is on the disk, or has failed."""
        if self._task is not None:
            self._enough.set()
            await asyncio.shield(self._task)  # whoever stops waiting does not stop the writing

    def check(self, file: object) -> None:
        """Raises OSError when a write to this file has failed."""
        if self._failed and isinstance(file, IOBase) and (error := self._failed.get(cast("IO[bytes]", file))):
            raise OSError(error.errno, error.strerror)

    def forget(self, file: IO[bytes]) -> OSError | None:
        """What has failed, of a file that is closed."""
        return self._failed.pop(file, None)

    async def _write(self) -> None:
        try:
            while self._waiting:
                await self._gather()
                taken, self._waiting, self._gathered = self._waiting, [], 0
                try:
                    found = await self._threads.run(_write_all, taken, frozenset(self._failed))
                except OSError as error:  # nothing of it was tried
                    found = {file: error for file, _, _ in taken}
                self._failed = found | self._failed  # the first failure is the one to tell
                self._size -= sum(len(data) for _, _, data in taken)
        finally:
            self._task = None
            self._enough.clear()  # whoever hurried this one does not hurry the next

    async def _gather(self) -> None:
        """Until there is enough for a thread, or somebody waits for it, or nothing more comes."""
        if self._gathered < ENOUGH and not self._enough.is_set():
            late = asyncio.get_running_loop().call_later(PAUSE, self._enough.set)
            await self._enough.wait()
            late.cancel()
        self._enough.clear()


class Sftp(asyncssh.SFTPServer):
    """One session."""

    def __init__(
        self, channel: asyncssh.SSHServerChannel[bytes], state: AgentState, threads: DiskThreads, base: bytes
    ) -> None:
        super().__init__(channel)
        self._own_channel = channel
        self._threads = threads
        self._behind = _Behind(threads)
        self._base = base
        self._state = state
        self._session = state.open_session("ssh")
        state.counters.count("agent_ssh_server_sftp_connections_total")

    def map_path(self, path: bytes) -> bytes:
        return path if path.startswith(b"/") else self._base + b"/" + path

    def reverse_map_path(self, path: bytes) -> bytes:
        return path

    def exit(self) -> None:
        self._state.close_session(self._session, "ssh")
        # asyncssh closes the channel without an exit status, which scp takes for a failure.
        if not self._own_channel.is_closing():
            self._own_channel.exit(0)

    async def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        return await self.in_thread(_open, self.map_path(path), pflags, attrs.permissions)

    async def close(self, file_obj: object) -> None:
        file = cast("IO[bytes]", file_obj)
        try:
            await self.in_thread(file.close)
        except OSError:
            if file.closed:
                raise
            # There was no thread for it. Nobody asks again: better waited for here than open for ever.
            file.close()
        finally:
            error = self._behind.forget(file)
        if error:
            raise error

    def read(self, file_obj: object, offset: int, size: int) -> bytes | Awaitable[bytes]:
        file, size = cast("IO[bytes]", file_obj), min(size, MOST_READ)
        cached = _read_cached(file, offset, size) if self._behind.is_empty else b""
        return cached or self.in_thread(_read, file, offset, size)

    async def write(self, file_obj: object, offset: int, data: bytes) -> int:
        await self._behind.put(cast("IO[bytes]", file_obj), offset, data)
        return len(data)

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        names = await self.in_thread(_names, self.map_path(path))
        while found := await self.in_thread(self._described, names):
            for name in found:
                yield name

    def _described(self, names: Iterator[asyncssh.SFTPName]) -> list[asyncssh.SFTPName]:
        """The next entries, as `ls -l` shows them: names of users may have to be asked for."""
        found = list(islice(names, NAMES))
        for name in found:
            self.format_longname(name)
        return found

    async def in_thread(self, do: Callable[[*Arguments], Found], *arguments: *Arguments) -> Found:
        """After all writes."""
        await self._behind.wait_written()
        return await self._threads.run(do, *arguments)

    def check(self, file: object) -> None:
        """Raises OSError when a write to this file has failed; for what is no file, too."""
        self._behind.check(file)


def _operation(name: str) -> Callable[..., Awaitable[Any]]:
    plain = getattr(asyncssh.SFTPServer, name)

    async def run(self: Sftp, *arguments: Any) -> Any:
        found = await self.in_thread(plain, self, *arguments)
        self.check(arguments[0])
        return found

    return run


for _name in IN_THREADS:
    setattr(Sftp, _name, _operation(_name))


def adapt_library() -> None:
    """Have asyncssh's sessions end whole, and offer nothing that goes past this file.

    A session that ends closes its files, and says that it has ended: at the first file whose writes have failed, and
    which says so when it is closed, asyncssh stops half-way. The session would count as open for ever.
    """
    kind: Any = asyncssh.sftp.SFTPServerHandler
    plain = kind._cleanup

    async def cleanup(handler: Any, reason: Exception | None) -> None:
        left, handler._file_handles = handler._file_handles, {}
        for file in left.values():
            with suppress(Exception):  # nobody is there to be told
                await handler._server.close(file)
        await plain(handler, reason)

    kind._cleanup = cleanup
    kind._extensions = [(name, data) for name, data in kind._extensions if name not in NOT_OFFERED]
    for name in NOT_OFFERED:
        kind._packet_handlers.pop(name, None)


def _read_cached(file: IO[bytes], offset: int, size: int) -> bytes:
    """All of it when it is in memory, which it mostly is: the system reads ahead of whoever reads. Else nothing."""
    if not _NOWAIT:
        return b""
    buffer = bytearray(size)
    try:
        taken = os.preadv(file.fileno(), [buffer], offset, _NOWAIT)
    except OSError:
        return b""  # not yet; or the file system cannot say
    return bytes(buffer) if taken == size else b""


def _read(file: IO[bytes], offset: int, size: int) -> bytes:
    return os.pread(file.fileno(), size, offset)


def _write_all(writes: Sequence[_Write], lost: Set[IO[bytes]]) -> dict[IO[bytes], OSError]:
    """What has failed, by file; nothing more is written to that one, nor to those that were lost before."""
    failed: dict[IO[bytes], OSError] = {}
    for file, offset, pieces in _runs(writes):
        if file not in failed and file not in lost:
            try:
                _write(file, offset, pieces)
            except OSError as error:
                failed[file] = error
            except Exception as error:  # an offset is any number of a client's; the others' writes must not be lost
                failed[file] = OSError(errno.EINVAL, f"cannot be written: {error}")
    return failed


def _runs(writes: Sequence[_Write]) -> Iterator[tuple[IO[bytes], int, list[bytes]]]:
    """Pieces that follow each other in one file, together: each call of the system gives the interpreter away, and
    has to wait until the busy event loop gives it back."""
    run: list[bytes] = []
    begin, end, of = 0, 0, None
    for file, offset, data in writes:
        if file is not of or offset != end or len(run) == PIECES:
            if of is not None:
                yield of, begin, run
            run, begin, end, of = [], offset, offset, file
        run.append(data)
        end += len(data)
    if of is not None:
        yield of, begin, run


def _write(file: IO[bytes], offset: int, pieces: list[bytes]) -> None:
    """All of it: a disk that is nearly full takes a part, and says so only to whoever comes with the rest."""
    taken = _write_together(file.fileno(), pieces, offset)
    for data in pieces:
        rest = memoryview(data)[taken:]
        taken = max(taken - len(data), 0)
        offset += len(data) - len(rest)
        while rest:
            written = os.pwrite(file.fileno(), rest, offset)
            rest, offset = rest[written:], offset + written


def _write_together(descriptor: int, pieces: list[bytes], offset: int) -> int:
    """Bytes that were taken at once; 0 where the system cannot."""
    return os.pwritev(descriptor, pieces, offset) if hasattr(os, "pwritev") and len(pieces) > 1 else 0


def _open(path: bytes, pflags: int, permissions: int | None) -> IO[bytes]:
    """Unbuffered. A pipe is not waited for: it is no file that could be read from an offset, which the client is told
    when it tries."""
    both = _wire.FXF_READ | _wire.FXF_WRITE
    mode, flags = "rb", os.O_RDONLY
    if pflags & both == both:
        mode, flags = "r+b", os.O_RDWR
    elif pflags & _wire.FXF_WRITE:
        mode, flags = "wb", os.O_WRONLY
    for wanted, flag in _FLAGS.items():
        flags |= flag if pflags & wanted else 0
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o666 if permissions is None else permissions)
    try:
        return open(descriptor, mode, buffering=0)  # noqa: PTH123 - of a descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _names(path: bytes) -> Iterator[asyncssh.SFTPName]:
    """Raises OSError at once for what is no folder that may be read."""
    entries = os.scandir(path)

    def found() -> Iterator[asyncssh.SFTPName]:
        with entries:
            for name in (b".", b".."):
                yield from _named(name, partial(os.lstat, os.path.join(path, name)))  # noqa: PTH118
            for entry in entries:
                yield from _named(entry.name, partial(entry.stat, follow_symlinks=False))

    return found()


def _named(name: bytes, look: Callable[[], os.stat_result]) -> Iterator[asyncssh.SFTPName]:
    """Nothing when it is gone by now, or is not to be looked at (somebody's FUSE): the rest of the folder is there."""
    with suppress(OSError):
        yield asyncssh.SFTPName(name, attrs=asyncssh.SFTPAttrs.from_local(look()))


take_longer_writes()
adapt_library()
