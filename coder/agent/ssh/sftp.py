"""SFTP server with the rights of the agent's user; relative paths start in the agent's directory.

A disk may never answer, and a path may be a pipe without a writer. So the event loop makes no file system call that
could block: it would stall every terminal of the workspace. asyncssh handles one request of a session after the other,
and so do the threads; only that session waits.
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
from typing import IO, TYPE_CHECKING, Protocol, TypeVar, TypeVarTuple, cast

import outcome
import trio
from trio_asyncio import trio_as_aio

from coder.agent.platform import system
from coder.agent.ssh.limits import limit_sftp
from coder.agent.ssh.negotiation import accept_long_writes
from coder.agent.state import AgentState
from coder.agent.workspace.files import NO_WAIT, workdir
from coder.base.threads import NoThreadError
from coder.net.ssh_library import asyncssh

if TYPE_CHECKING:
    from asyncssh.sftp import SFTPServerHandler

_Write = tuple[IO[bytes], int, bytes]
Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

THREADS = 32
"""Sessions (ours) that wait for a disk at a time, separate from the agent's other disk access; further sessions
queue."""
MAX_READ = 4 << 20
"Bytes of one read: the limit asyncssh announces. A client may request any number, which must not allocate memory."
MAX_PENDING = 2 << 20
"Bytes (ours) of a session in transit to the disk, beyond which the client waits."
BATCH_SIZE, BATCH_DELAY = 256 << 10, 0.005
"Bytes (ours) of a session that justify a thread, and the seconds to wait for that many. A close does not wait."
MAX_BUFFERS = 64
"Buffers written in one system call; the system accepts 1,024 at most."
NAMES_PER_READ = 128
"Directory entries read at a time: as many as asyncssh puts into one reply."
THREADED_OPERATIONS = (
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
"""Operations of asyncssh that run in a thread."""
REMOVED_EXTENSIONS = frozenset({b"ranges@asyncssh.com"})
"""Extensions specific to asyncssh that access the file directly: on the event loop, and before pending writes.
asyncssh's clients work without them."""

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
    """Runner of calls that may block, for all sessions of a server.

    Through trio's task for a thread and its bridge to asyncio a call costs four times as much, a third of a transfer in
    pieces of 32 KiB.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(THREADS)

    async def run(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Return what `function` returns or raise what it raises; raise OSError when no thread is free. When cancelled,
        the call runs until the disk answers and its result is dropped."""
        await self._free.acquire()
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        token = trio.lowlevel.current_trio_token()

        def deliver(result: outcome.Outcome[Result]) -> None:
            with suppress(trio.RunFinishedError):  # the agent has ended meanwhile
                token.run_sync_soon(self._done, future, result)

        try:
            trio.lowlevel.start_thread_soon(partial(function, *arguments), deliver)
        except NoThreadError:
            self._free.release()
            raise
        return await future

    def _done(self, future: asyncio.Future[Result], result: outcome.Outcome[Result]) -> None:
        self._free.release()
        if future.cancelled():
            return
        if isinstance(result, outcome.Error):
            future.set_exception(result.error)
        else:
            future.set_result(result.unwrap())


async def start_sftp(channel: asyncssh.SSHServerChannel[bytes], state: AgentState, threads: DiskThreads) -> Sftp:
    """Return the server of one session. The starting folder is looked up first, because that accesses a disk, too."""
    return Sftp(channel, state, threads, os.fsencode(await trio_as_aio(workdir)(state)))


class _WriteBehind:
    """Write-behind of one session: acknowledged writes in transit to the disk, written in batches.

    A thread for each would cost more than the write. Writes keep their order, and every other request of the session
    waits for them. The next write to a failed file, and its close, report the failure.
    """

    def __init__(self, threads: DiskThreads) -> None:
        self._threads = threads
        self._queued: list[_Write] = []
        self._size = self._gathered = 0
        self._batch_ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failed: dict[IO[bytes], OSError] = {}

    @property
    def is_empty(self) -> bool:
        return self._task is None

    async def put(self, file: IO[bytes], offset: int, data: bytes) -> None:
        """Queue a write; wait when too many bytes are pending. Raises OSError for a file with a failed write."""
        self.check(file)
        self._queued.append((file, offset, data))
        self._size += len(data)
        self._gathered += len(data)
        if self._task is None:
            self._task = asyncio.ensure_future(self._write())
        if self._gathered >= BATCH_SIZE:
            self._batch_ready.set()
        if self._size > MAX_PENDING:
            await self.wait_written()

    async def wait_written(self) -> None:
        """Wait until everything queued is on the disk, or has failed."""
        if self._task is not None:
            self._batch_ready.set()
            await asyncio.shield(self._task)  # a cancelled waiter does not cancel the writing

    def check(self, file: object) -> None:
        """Raises OSError when a write to this file has failed."""
        if self._failed and isinstance(file, IOBase) and (error := self._failed.get(cast("IO[bytes]", file))):
            raise OSError(error.errno, error.strerror)

    def forget(self, file: IO[bytes]) -> OSError | None:
        """Drop and return the failure of a file that is closed."""
        return self._failed.pop(file, None)

    async def _write(self) -> None:
        try:
            while self._queued:
                await self._gather()
                batch, self._queued, self._gathered = self._queued, [], 0
                try:
                    failures = await self._threads.run(_write_all, batch, frozenset(self._failed))
                except OSError as error:  # no write was attempted
                    failures = {file: error for file, _, _ in batch}
                self._failed = failures | self._failed  # the first failure is the one to report
                self._size -= sum(len(data) for _, _, data in batch)
        finally:
            self._task = None
            self._batch_ready.clear()  # a request to hurry applies to one batch only

    async def _gather(self) -> None:
        """Wait until the batch is worth a thread, or a request waits for it, or nothing more arrives."""
        if self._gathered < BATCH_SIZE and not self._batch_ready.is_set():
            late = asyncio.get_running_loop().call_later(BATCH_DELAY, self._batch_ready.set)
            await self._batch_ready.wait()
            late.cancel()
        self._batch_ready.clear()


class Sftp(asyncssh.SFTPServer):
    """One SFTP session."""

    def __init__(
        self, channel: asyncssh.SSHServerChannel[bytes], state: AgentState, threads: DiskThreads, base: bytes
    ) -> None:
        super().__init__(channel)
        self._own_channel = channel
        self._threads = threads
        self._pending_writes = _WriteBehind(threads)
        self._base = base
        self._state = state
        self._session = state.open_session("ssh")
        state.counters.count("agent_ssh_server_sftp_connections_total")

    def map_path(self, path: bytes) -> bytes:
        return system.sftp_path(path, self._base)

    def reverse_map_path(self, path: bytes) -> bytes:
        return system.wire_path(path)

    def exit(self) -> None:
        self._state.close_session(self._session, "ssh")
        # asyncssh closes the channel without an exit status, which scp treats as a failure.
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
            # No thread was free. There is no second close: blocking here is better than a leaked descriptor.
            file.close()
        finally:
            error = self._pending_writes.forget(file)
        if error:
            raise error

    def read(self, file_obj: object, offset: int, size: int) -> bytes | Awaitable[bytes]:
        file, size = cast("IO[bytes]", file_obj), min(size, MAX_READ)
        cached = _read_cached(file, offset, size) if self._pending_writes.is_empty else b""
        return cached or self.in_thread(_read, file, offset, size)

    async def write(self, file_obj: object, offset: int, data: bytes) -> int:
        await self._pending_writes.put(cast("IO[bytes]", file_obj), offset, data)
        return len(data)

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        names = await self.in_thread(_folder_names, self.map_path(path))
        while batch := await self.in_thread(self._next_names, names):
            for name in batch:
                yield name

    def _next_names(self, names: Iterator[asyncssh.SFTPName]) -> list[asyncssh.SFTPName]:
        """Return the next entries in the format of `ls -l`: user names may need a lookup."""
        batch = list(islice(names, NAMES_PER_READ))
        for name in batch:
            self.format_longname(name)
        return batch

    async def in_thread(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Run a function in a thread, after all pending writes."""
        await self._pending_writes.wait_written()
        return await self._threads.run(function, *arguments)

    def check(self, file: object) -> None:
        """Raises OSError when a write to this file has failed; accepts arguments that are not files."""
        self._pending_writes.check(file)


class _Operation(Protocol):
    async def __call__(self, sftp: Sftp, /, *arguments: object) -> object: ...


def _operation(name: str) -> _Operation:
    original = getattr(asyncssh.SFTPServer, name)

    async def run(self: Sftp, /, *arguments: object) -> object:
        result: object = await self.in_thread(original, self, *arguments)
        self.check(arguments[0])
        return result

    return run


for _name in THREADED_OPERATIONS:
    setattr(Sftp, _name, _operation(_name))


def adapt_library() -> None:
    """Make asyncssh's sessions close completely, and remove extensions that bypass this module.

    A closing session closes its files and reports its end. At the first file whose writes have failed, the close raises
    and asyncssh stops half-way: the session would count as open forever.
    """
    kind = asyncssh.sftp.SFTPServerHandler
    original = kind._cleanup

    async def cleanup(handler: SFTPServerHandler, reason: Exception | None) -> None:
        open_files, handler._file_handles = handler._file_handles, {}
        for file in open_files.values():
            with suppress(Exception):  # the client is gone and receives no error
                closed = handler._server.close(file)
                if closed is not None:
                    await closed
        closing = original(handler, reason)
        if closing is not None:
            await closing

    extensions = [(name, data) for name, data in kind._extensions if name not in REMOVED_EXTENSIONS]
    for attribute, value in (("_cleanup", cleanup), ("_extensions", extensions)):
        setattr(kind, attribute, value)
    for name in REMOVED_EXTENSIONS:
        kind._packet_handlers.pop(name, None)


def _read_cached(file: IO[bytes], offset: int, size: int) -> bytes:
    """Return the bytes when all of them are in the page cache, which is common thanks to read-ahead; else b""."""
    if not _NOWAIT:
        return b""
    buffer = bytearray(size)
    try:
        count = os.preadv(file.fileno(), [buffer], offset, _NOWAIT)
    except OSError:
        return b""  # not cached, or the file system does not support the flag
    return bytes(buffer) if count == size else b""


def _read(file: IO[bytes], offset: int, size: int) -> bytes:
    return system.read_at(file.fileno(), size, offset)


def _write_all(writes: Sequence[_Write], lost: Set[IO[bytes]]) -> dict[IO[bytes], OSError]:
    """Write all; return the failures by file. After a failure nothing more is written to that file, nor to files in
    `lost`."""
    failed: dict[IO[bytes], OSError] = {}
    for file, offset, pieces in _adjacent_runs(writes):
        if file not in failed and file not in lost:
            try:
                _write(file, offset, pieces)
            except OSError as error:
                failed[file] = error
            except Exception as error:  # a client may send any offset; the other writes must not be lost
                failed[file] = OSError(errno.EINVAL, f"cannot be written: {error}")
    return failed


def _adjacent_runs(writes: Sequence[_Write]) -> Iterator[tuple[IO[bytes], int, list[bytes]]]:
    """Join adjacent writes of one file: every system call releases the interpreter and waits for the busy event loop to
    release it again."""
    run: list[bytes] = []
    begin, end, run_file = 0, 0, None
    for file, offset, data in writes:
        if file is not run_file or offset != end or len(run) == MAX_BUFFERS:
            if run_file is not None:
                yield run_file, begin, run
            run, begin, end, run_file = [], offset, offset, file
        run.append(data)
        end += len(data)
    if run_file is not None:
        yield run_file, begin, run


def _write(file: IO[bytes], offset: int, pieces: list[bytes]) -> None:
    """Write all bytes: a nearly full disk accepts a part, and reports the error only for the rest."""
    count = _write_together(file.fileno(), pieces, offset)
    for data in pieces:
        rest = memoryview(data)[count:]
        count = max(count - len(data), 0)
        offset += len(data) - len(rest)
        while rest:
            written = system.write_at(file.fileno(), rest, offset)
            rest, offset = rest[written:], offset + written


def _write_together(descriptor: int, pieces: list[bytes], offset: int) -> int:
    """Return the number of bytes written in one call; 0 where the system does not support it."""
    return os.pwritev(descriptor, pieces, offset) if hasattr(os, "pwritev") and len(pieces) > 1 else 0


def _open(path: bytes, pflags: int, permissions: int | None) -> IO[bytes]:
    """Open a file unbuffered. A pipe is not waited for: it cannot be read at an offset, and the client gets that error
    when it reads."""
    both = _wire.FXF_READ | _wire.FXF_WRITE
    mode, flags = "rb", os.O_RDONLY
    if pflags & both == both:
        mode, flags = "r+b", os.O_RDWR
    elif pflags & _wire.FXF_WRITE:
        mode, flags = "wb", os.O_WRONLY
    for sftp_flag, flag in _FLAGS.items():
        flags |= flag if pflags & sftp_flag else 0
    descriptor = os.open(path, flags | NO_WAIT, 0o666 if permissions is None else permissions)
    try:
        return open(descriptor, mode, buffering=0)  # noqa: PTH123 - a descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _folder_names(path: bytes) -> Iterator[asyncssh.SFTPName]:
    """Iterate over a folder. Raises OSError immediately for a path that is not a readable folder."""
    entries = os.scandir(path)

    def iterate() -> Iterator[asyncssh.SFTPName]:
        with entries:
            for name in (b".", b".."):
                yield from _entry(name, partial(os.lstat, os.path.join(path, name)))  # noqa: PTH118
            for entry in entries:
                yield from _entry(entry.name, partial(entry.stat, follow_symlinks=False))

    return iterate()


def _entry(name: bytes, read_attributes: Callable[[], os.stat_result]) -> Iterator[asyncssh.SFTPName]:
    """Yield the entry; nothing when it has disappeared or is not accessible (another user's FUSE mount), so that the
    rest of the folder is listed."""
    with suppress(OSError):
        yield asyncssh.SFTPName(name, attrs=asyncssh.SFTPAttrs.from_local(read_attributes()))


accept_long_writes()
limit_sftp()
adapt_library()
