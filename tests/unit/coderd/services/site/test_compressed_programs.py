"""Compressed forms of programs: creation, limits and failures."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.coderd.services.site import compressed_programs
from coder.coderd.services.site.compressed_programs import MIN_SIZE, RETRY_AFTER, STALE_AFTER, CompressedPrograms, Form

CODE = b"much the same " * (MIN_SIZE // 10)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "coder-linux-amd64"
    path.write_bytes(CODE)
    return path


async def test_concurrent_requests_share_form(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    created, really = 0, gzip.GzipFile

    def count(*args: object) -> object:
        nonlocal created
        created += 1
        return really(*args)  # type: ignore[call-overload]

    monkeypatch.setattr(gzip, "GzipFile", count)
    forms = CompressedPrograms(tmp_path / "cache" / "compressed")
    result: list[Form | None] = []

    async def ask() -> None:
        result.append(await forms.gzipped(program, len(CODE), "aa"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    path = tmp_path / "cache" / "compressed" / "aa.gz"
    assert result == [Form(path, path.stat().st_size)] * 5
    assert created == 1
    assert gzip.decompress(path.read_bytes()) == CODE
    later = CompressedPrograms(tmp_path / "cache" / "compressed")  # the next server with this folder
    assert await later.gzipped(program, len(CODE), "aa") == result[0]
    assert created == 1


async def test_uncompressible_program_stays_plain(program: Path, tmp_path: Path) -> None:
    forms = CompressedPrograms(tmp_path / "forms")
    for size in (MIN_SIZE - 1, compressed_programs.LARGEST + 1):
        assert await forms.gzipped(program, size, "aa") is None
    program.write_bytes(os.urandom(MIN_SIZE))
    assert await forms.gzipped(program, MIN_SIZE, "bb") is None
    assert not list((tmp_path / "forms").iterdir())
    program.write_bytes(CODE)
    assert await forms.gzipped(program, len(CODE), "bb") is None, "not retried with every request"


async def test_readonly_folder_serves_program(program: Path, tmp_path: Path) -> None:
    (tmp_path / "forms").write_text("not a folder")
    assert await CompressedPrograms(tmp_path / "forms").gzipped(program, len(CODE), "aa") is None


async def test_least_recently_used_is_deleted(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    for number in range(compressed_programs.MAX_FILES):
        (folder / f"{number}.gz").write_bytes(b"")
        os.utime(folder / f"{number}.gz", (number, number))
    forms = CompressedPrograms(folder)
    assert await forms.gzipped(program, len(CODE), "0") is not None  # used again
    assert await forms.gzipped(program, len(CODE), "new") is not None
    names = {path.stem for path in folder.iterdir()}
    assert len(names) == compressed_programs.MAX_FILES
    assert {"0", "new"} <= names and "1" not in names


class Held:
    """A program whose compression waits in its thread for `go`, after writing the first chunk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
        self.began, self.go = threading.Event(), threading.Event()
        self.halves: list[Path] = []
        really, folder = gzip.GzipFile.write, program.parent / "forms"

        def write(packed: gzip.GzipFile, data: bytes) -> int:
            written = really(packed, data)
            self.halves = list(folder.glob("*.half"))
            self.began.set()
            self.go.wait()
            return written

        monkeypatch.setattr(gzip.GzipFile, "write", write)

    async def runs(self) -> None:
        await trio.to_thread.run_sync(self.began.wait)


async def test_ready_form_does_not_wait(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = CompressedPrograms(tmp_path / "forms")
    ready = await forms.gzipped(program, len(CODE), "ready")
    held = Held(monkeypatch, program)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(forms.gzipped, program, len(CODE), "slow")
        await held.runs()
        assert await forms.gzipped(program, len(CODE), "ready") == ready
        held.go.set()
    assert (tmp_path / "forms" / "slow.gz").exists()


async def test_cancelled_compression_restarts(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = CompressedPrograms(tmp_path / "forms")
    with monkeypatch.context() as patched:
        held = Held(patched, program)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(forms.gzipped, program, len(CODE), "aa")
            await held.runs()
            nursery.cancel_scope.cancel()
        (half,) = held.halves
        assert half.exists(), "the thread is still running"
    created = await forms.gzipped(program, len(CODE), "aa")
    assert created is not None and gzip.decompress(created.path.read_bytes()) == CODE
    held.go.set()
    while await trio.to_thread.run_sync(half.exists):
        pass
    assert created.path.stat().st_size == created.size, "an abandoned compression writes nothing more"


async def test_failed_write_is_retried(program: Path, tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    (tmp_path / "forms").write_text("not a folder")
    forms = CompressedPrograms(tmp_path / "forms")
    assert await forms.gzipped(program, len(CODE), "aa") is None
    (tmp_path / "forms").unlink()
    assert await forms.gzipped(program, len(CODE), "aa") is None, "not retried with every request"
    await trio.sleep(RETRY_AFTER + 1)
    assert await forms.gzipped(program, len(CODE), "aa") is not None


async def test_stale_files_are_deleted(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    (folder / "old.1-0.half").write_bytes(b"x")
    (folder / "new.1-0.half").write_bytes(b"x")
    now = (folder / "new.1-0.half").stat().st_mtime
    os.utime(folder / "old.1-0.half", (0, now - STALE_AFTER - 60))
    assert await CompressedPrograms(folder).gzipped(program, len(CODE), "aa") is not None
    assert {path.name for path in folder.iterdir()} == {"aa.gz", "new.1-0.half"}, "another process may be writing it"
