"""SFTP with the real client: operations on files, and no disk blocks the event loop."""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest
import trio
from trio_asyncio import aio_as_trio

from coder.agent.ssh import sftp
from coder.base.threads import NoThreadError
from coder.net.ssh_library import asyncssh
from coder.net.ssh_transport import PIECE, StreamTransport
from tests.kit.event_loop_probes import watched
from tests.unit.agent.ssh.test_server import OPTIONS, Server, server

__all__ = ["server"]


async def transfer(server: Server, batch: str, *, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    argv = ["sftp", *OPTIONS, "-P", str(server.port), "-b", "-", "u@127.0.0.1"]
    with trio.fail_after(60):
        return await trio.run_process(argv, stdin=batch.encode(), capture_stdout=True, capture_stderr=True, check=check)


async def test_file_calls_run_in_threads(server: Server, tmp_path: Path) -> None:
    folder, here = tmp_path / "there", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    (here / "source").write_bytes(os.urandom(1 << 20))
    with watched(folder) as calls:
        done = await transfer(
            server,
            f"""
            put {here}/source {folder}/a
            rename {folder}/a {folder}/b
            chmod 600 {folder}/b
            symlink {folder}/b {folder}/link
            ln {folder}/b {folder}/hard
            mkdir {folder}/d
            ls -la {folder}
            df {folder}
            get {folder}/link {here}/back
            rm {folder}/hard
            rmdir {folder}/d
        """,
        )
    assert not calls
    assert (here / "back").read_bytes() == (here / "source").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["b", "link"]
    assert (folder / "b").stat().st_mode & 0o777 == 0o600
    shown = done.stdout.decode()
    assert "-rw-------" in shown and " link" in shown and " .." in shown


async def test_silent_pipe_blocks_nothing(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for batch in (f"get pipe {tmp_path}/got", f"put {__file__} pipe"):
        done = await transfer(server, batch, check=False)
        assert done.returncode == 1, "a pipe has no offset"
    done = await server.ssh("echo alive")
    assert done.stdout == b"alive\n"


async def test_large_folder_is_listed(server: Server, tmp_path: Path) -> None:
    names = {f"f{number:04}" for number in range(3 * sftp.NAMES_PER_READ + 1)}
    (tmp_path / "many").mkdir()
    for name in names:
        (tmp_path / "many" / name).touch()
    shown = (await transfer(server, "ls -1 many")).stdout.decode().split()
    assert {path.rpartition("/")[2] for path in shown} >= names
    assert (await transfer(server, "ls none", check=False)).returncode == 1


async def test_open_flags_are_respected(server: Server, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"0123456789")
    (tmp_path / "whole").write_bytes(b"0123456789abcdef")
    await transfer(server, f"reput {tmp_path}/whole part")
    assert (tmp_path / "part").read_bytes() == b"0123456789abcdef"
    (tmp_path / "short").write_bytes(b"x")
    await transfer(server, f"put {tmp_path}/short part")
    assert (tmp_path / "part").read_bytes() == b"x"


async def test_silent_disk_blocks_own_session(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk below one name does not answer; another session and a command continue, and the server can end."""
    answer = threading.Event()
    plain = os.lstat

    def lstat(path: bytes, **more: object) -> os.stat_result:
        if path.endswith(b"/away"):
            answer.wait(60)
        return plain(path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "lstat", lstat)
    (tmp_path / "near").touch()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: transfer(server, "ls away", check=False))
            assert b"near" in (await transfer(server, "ls near")).stdout
            assert (await server.ssh("echo alive")).stdout == b"alive\n"
            nursery.cancel_scope.cancel()
    finally:
        answer.set()


async def test_write_behind_failure_is_reported(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "large").write_bytes(os.urandom(8 << 20))

    monkeypatch.setattr(os, "pwrite", full)
    monkeypatch.setattr(os, "pwritev", full)
    for name in ("small", "large"):
        done = await transfer(server, f"put {tmp_path}/{name} there", check=False)
        assert done.returncode == 1, name
    monkeypatch.undo()
    await transfer(server, f"put {tmp_path}/large there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "large").read_bytes()


async def test_large_packet_is_not_copied(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transport relies on asyncssh's own names for the position in a packet."""
    missing: list[int] = []
    plain = StreamTransport._missing

    def noted(transport: StreamTransport) -> int:
        missing.append(plain(transport))
        return missing[-1]

    monkeypatch.setattr(StreamTransport, "_missing", noted)
    content = os.urandom(4 << 20)

    async def write() -> None:  # asyncio's
        async with files(server) as (connection, _):
            await connection.run(f"cat > {tmp_path}/there", input=content, encoding=None)

    with trio.fail_after(60):
        await aio_as_trio(write)()
    assert max(missing) > PIECE
    assert (tmp_path / "there").read_bytes() == content


async def test_adjacent_writes_are_joined(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call releases the interpreter and waits for the busy event loop to release it again."""
    together: list[int] = []
    plain = sftp._write

    def noted(file: IO[bytes], offset: int, pieces: list[bytes]) -> None:
        together.append(len(pieces))
        plain(file, offset, pieces)

    monkeypatch.setattr(sftp, "_write", noted)
    (tmp_path / "large").write_bytes(os.urandom(4 << 20))
    await transfer(server, f"put {tmp_path}/large there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "large").read_bytes()
    assert max(together) > 1 and max(together) <= sftp.MAX_BUFFERS


@pytest.mark.parametrize(
    ("writes", "runs"),
    [
        ([(0, b"ab"), (2, b"c")], [(0, [b"ab", b"c"])]),
        ([(0, b"ab"), (3, b"c")], [(0, [b"ab"]), (3, [b"c"])]),
        ([(5, b"ab"), (0, b"c"), (1, b"d")], [(5, [b"ab"]), (0, [b"c", b"d"])]),
        ([(0, b"a"), (0, b"b")], [(0, [b"a"]), (0, [b"b"])]),
        ([], []),
    ],
)
def test_adjacent_runs(tmp_path: Path, writes: list[tuple[int, bytes]], runs: list[tuple[int, list[bytes]]]) -> None:
    with (tmp_path / "f").open("wb") as file:
        assert list(sftp._adjacent_runs([(file, *write) for write in writes])) == [(file, *run) for run in runs]


def test_run_ends_with_file(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as one, (tmp_path / "g").open("wb") as other:
        assert list(sftp._adjacent_runs([(one, 0, b"a"), (other, 1, b"b")])) == [(one, 0, [b"a"]), (other, 1, [b"b"])]


async def test_reads_see_earlier_writes(server: Server) -> None:
    """In one session: by the same file, by its name, and by its size."""

    async def converse() -> None:  # asyncio's
        options = {"known_hosts": None, "username": "u", "config": None}
        async with (
            asyncssh.connect("127.0.0.1", server.port, **options) as client,
            client.start_sftp_client() as files,
            files.open("f", "wb+") as file,
        ):
            for number in range(50):
                piece = bytes([number]) * 32768
                await file.write(piece, number * 32768)
                assert await file.read(32768, number * 32768) == piece
                assert (await file.stat()).size == (number + 1) * 32768
                assert (await files.stat("f")).size == (number + 1) * 32768

    with trio.fail_after(60):
        await aio_as_trio(converse)()


def test_partial_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncssh reports success for a partial write, and no later write follows a file's last one."""
    plain, left = os.pwrite, 5

    def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "no space")
        left -= 1
        return plain(descriptor, data[:10], offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with (tmp_path / "f").open("wb", buffering=0) as file:
        sftp._write(file, 0, [b"0123456789" * 4])
        with pytest.raises(OSError, match="no space"):
            sftp._write(file, 40, [b"0123456789" * 4])
    assert (tmp_path / "f").read_bytes() == b"0123456789" * 5


def test_all_operations_are_threaded() -> None:
    """Additions of a new library version need a review."""
    operations = {
        name
        for name, found in inspect.getmembers(asyncssh.SFTPServer, inspect.isfunction)
        if "Awaitable" in str(inspect.signature(found).return_annotation)
    }
    harmless = {"exit", "format_longname"}
    later = {"lock", "unlock", "open56"}  # of version 4 of the protocol and later, which this server does not support
    assert operations - harmless - later == {*sftp.THREADED_OPERATIONS, "close", "open", "read", "write"}


def test_extensions_bypass_nothing() -> None:
    """Additions of a new library version need a review."""
    kind = asyncssh.sftp.SFTPServerHandler
    through_operations = {
        b"posix-rename@openssh.com",
        b"hardlink@openssh.com",
        b"fsync@openssh.com",
        b"lsetstat@openssh.com",
        b"statvfs@openssh.com",
        b"fstatvfs@openssh.com",
        b"copy-data",
    }
    of_no_file = {b"newline", b"vendor-id", b"limits@openssh.com"}
    later = {b"check-file", b"space-available", b"text-seek", b"vendor-id"}  # of later versions of the protocol
    assert {name for name, _ in kind._extensions} == through_operations | of_no_file
    handled = {name for name in kind._packet_handlers if isinstance(name, bytes)}
    assert handled - later == (through_operations | of_no_file) - {b"newline", b"vendor-id"}
    assert not handled & sftp.REMOVED_EXTENSIONS


@asynccontextmanager
async def files(server: Server) -> AsyncIterator[tuple[Any, Any]]:
    """Open an SFTP client of asyncio; yield (connection, client)."""
    options = {"known_hosts": None, "username": "u", "config": None}
    async with (
        asyncssh.connect("127.0.0.1", server.port, **options) as client,
        client.start_sftp_client() as found,
    ):
        yield client, found


def full(_descriptor: int, _data: memoryview, _offset: int) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_session_ends_after_lost_writes(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client leaves without closing its files; closing the first of them raises."""
    monkeypatch.setattr(os, "pwrite", full)

    async def converse() -> None:
        async with files(server) as (client, there):
            for name in ("first", "second"):
                file = await there.open(name, "wb")
                await file.write(b"x")
            assert server.state.sessions["ssh"] == 1
            client.abort()

    with trio.fail_after(60), suppress(asyncssh.Error, ConnectionError):
        await aio_as_trio(converse)()
    with trio.fail_after(60):
        while server.state.sessions["ssh"] or _open_below(tmp_path):
            await trio.sleep(0.02)


def _open_below(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(os.readlink(entry))  # noqa: PTH115 - of sockets, too
    return [name for name in found if name.startswith(str(folder))]


async def test_impossible_write_spares_other_files(server: Server, tmp_path: Path) -> None:
    """An offset may be any 64-bit number; both writes are in one batch."""

    async def converse() -> None:
        async with files(server) as (_, there):
            odd, good = await there.open("odd", "wb"), await there.open("good", "wb")
            await asyncio.gather(odd.write(b"x", (1 << 64) - 1), good.write(b"kept", 0))
            await good.close()
            with pytest.raises(asyncssh.SFTPError):
                await odd.close()

    with trio.fail_after(60):
        await aio_as_trio(converse)()
    assert (tmp_path / "good").read_bytes() == b"kept"


async def test_thread_shortage_reports_lost_writes(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container limits processes; and the slot of a failed thread is released."""
    plain = trio.lowlevel.start_thread_soon
    refused = 0

    def start(do: Any, deliver: Any) -> None:
        nonlocal refused
        if refused < 2 * sftp.THREADS and do.func is sftp._write_all:
            refused += 1
            raise NoThreadError
        plain(do, deliver)

    monkeypatch.setattr(trio.lowlevel, "start_thread_soon", start)

    async def converse() -> None:
        async with files(server) as (_, there):
            while refused < 2 * sftp.THREADS:
                file = await there.open("lost", "wb")
                await file.write(b"x", 0)
                with pytest.raises(asyncssh.SFTPError):
                    await file.close()
            async with there.open("kept", "wb") as file:
                await file.write(b"kept", 0)

    with trio.fail_after(60):
        await aio_as_trio(converse)()
    assert (tmp_path / "kept").read_bytes() == b"kept"


async def test_thread_shortage_still_closes(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client closes once: its data is written, and the close succeeds."""
    plain = trio.lowlevel.start_thread_soon
    refused = []

    def start(do: Any, deliver: Any) -> None:
        if getattr(do.func, "__name__", "") == "close":
            refused.append(do.func)
            raise NoThreadError
        plain(do, deliver)

    monkeypatch.setattr(trio.lowlevel, "start_thread_soon", start)

    async def converse() -> None:
        async with files(server) as (_, there):
            file = await there.open("kept", "wb")
            await file.write(b"kept", 0)
            await file.close()
            assert not _open_below(tmp_path)

    with trio.fail_after(60):
        await aio_as_trio(converse)()
    assert refused and (tmp_path / "kept").read_bytes() == b"kept"


def test_failed_file_gets_no_writes(tmp_path: Path) -> None:
    with (tmp_path / "lost").open("wb", 0) as lost, (tmp_path / "kept").open("wb", 0) as kept:
        writes = [(lost, 0, b"x"), (kept, 0, b"y")]
        assert sftp._write_all(writes, {lost}) == {}
    assert ((tmp_path / "lost").read_bytes(), (tmp_path / "kept").read_bytes()) == (b"", b"y")


async def test_unreadable_entry_spares_folder(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted since the listing, or a user's FUSE mount."""
    (tmp_path / "d").mkdir()
    for name in ("one", "two", "three"):
        (tmp_path / "d" / name).touch()
    plain = os.scandir

    class Gone:
        def __init__(self, entry: os.DirEntry[bytes]) -> None:
            self.name, self._entry = entry.name, entry

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            if self.name == b"two":
                raise FileNotFoundError(errno.ENOENT, "gone")
            return self._entry.stat(follow_symlinks=follow_symlinks)

    class Listing:
        def __init__(self, path: bytes) -> None:
            self._entries = plain(path)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def __iter__(self) -> Iterator[Gone]:
            return map(Gone, self._entries)

    monkeypatch.setattr(os, "scandir", Listing)
    done = await transfer(server, "ls -1 d", check=False)
    assert sorted(done.stdout.decode().split()[-2:]) == ["d/one", "d/three"]
    assert done.returncode == 0
