"""Files over SSH by the real client: what is done to them, and that no disk holds up the event loop."""

from __future__ import annotations

import errno
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from trio_asyncio import aio_as_trio

from coder.agent.ssh import sftp
from coder.net.ssh_library import asyncssh
from tests.unit.agent.ssh.test_server import OPTIONS, Server, server

__all__ = ["server"]

CALLS = frozenset({
    "open", "os.chmod", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir",
    "os.symlink", "os.truncate", "os.utime",
})  # fmt: skip
_watched: list[tuple[str, str]] = []
_thread: list[int] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _thread and event in CALLS and threading.get_ident() == _thread[0]:
        _watched.append((event, str(arguments[0])))


sys.addaudithook(_hear)  # for the life of the process: it listens where somebody watches


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Calls on files in the folder that this thread makes."""
    found: list[str] = []
    _watched.clear()
    _thread.append(threading.get_ident())
    try:
        yield found
    finally:
        _thread.clear()
        found += [event for event, path in _watched if str(folder) in path]


async def transfer(server: Server, batch: str, *, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    argv = ["sftp", *OPTIONS, "-P", str(server.port), "-b", "-", "u@127.0.0.1"]
    with trio.fail_after(60):
        return await trio.run_process(argv, stdin=batch.encode(), capture_stdout=True, capture_stderr=True, check=check)


async def test_no_call_on_a_file_is_made_on_the_event_loop(server: Server, tmp_path: Path) -> None:
    folder, here = tmp_path / "there", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    (here / "source").write_bytes(os.urandom(1 << 20))
    with watched(folder) as calls:
        done = await transfer(server, f"""
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
        """)  # fmt: skip
    assert not calls
    assert (here / "back").read_bytes() == (here / "source").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["b", "link"]
    assert (folder / "b").stat().st_mode & 0o777 == 0o600
    shown = done.stdout.decode()
    assert "-rw-------" in shown and " link" in shown and " .." in shown


async def test_a_pipe_nobody_writes_to_holds_up_nobody(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for batch in (f"get pipe {tmp_path}/got", f"put {__file__} pipe"):
        done = await transfer(server, batch, check=False)
        assert done.returncode == 1, "no file that could be read or written"
    done = await server.ssh("echo alive")
    assert done.stdout == b"alive\n"


async def test_a_folder_of_many_is_listed_whole(server: Server, tmp_path: Path) -> None:
    names = {f"f{number:04}" for number in range(3 * sftp.NAMES + 1)}
    (tmp_path / "many").mkdir()
    for name in names:
        (tmp_path / "many" / name).touch()
    shown = (await transfer(server, "ls -1 many")).stdout.decode().split()
    assert {path.rpartition("/")[2] for path in shown} >= names
    assert (await transfer(server, "ls none", check=False)).returncode == 1


async def test_files_are_opened_as_asked(server: Server, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"0123456789")
    (tmp_path / "whole").write_bytes(b"0123456789abcdef")
    await transfer(server, f"reput {tmp_path}/whole part")
    assert (tmp_path / "part").read_bytes() == b"0123456789abcdef"
    (tmp_path / "short").write_bytes(b"x")
    await transfer(server, f"put {tmp_path}/short part")
    assert (tmp_path / "part").read_bytes() == b"x"


async def test_sessions_wait_for_a_disk_apart_from_others(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk below one name does not answer; another session and a command go on, and the server can end."""
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


async def test_what_fails_behind_an_answer_is_said_by_the_next_write_or_the_close(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "large").write_bytes(os.urandom(8 << 20))

    def full(_descriptor: int, _data: memoryview, _offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    for name in ("small", "large"):
        done = await transfer(server, f"put {tmp_path}/{name} there", check=False)
        assert done.returncode == 1, name
    monkeypatch.undo()
    await transfer(server, f"put {tmp_path}/large there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "large").read_bytes()


async def test_whoever_reads_after_a_write_reads_it(server: Server) -> None:
    """In one session: by the same file, by its name, and its size."""

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


def test_a_write_of_which_the_disk_takes_a_part_is_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncssh says that all is well when a part was written, and the last one of a file has nobody behind it."""
    plain, left = os.pwrite, 5

    def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "no space")
        left -= 1
        return plain(descriptor, data[:10], offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with (tmp_path / "f").open("wb", buffering=0) as file:
        sftp._write(file, 0, b"0123456789" * 4)
        with pytest.raises(OSError, match="no space"):
            sftp._write(file, 40, b"0123456789" * 4)
    assert (tmp_path / "f").read_bytes() == b"0123456789" * 5


def test_every_operation_of_the_library_is_in_a_thread() -> None:
    """Whatever a new version of it adds has to be looked at."""
    operations = {
        name for name, found in inspect.getmembers(asyncssh.SFTPServer, inspect.isfunction)
        if "Awaitable" in str(inspect.signature(found).return_annotation)
    }  # fmt: skip
    harmless = {"exit", "format_longname"}
    later = {"lock", "unlock", "open56"}  # of version 4 of the protocol and later, which is not spoken here
    assert operations - harmless - later == {*sftp.IN_THREADS, "close", "open", "read", "write"}
