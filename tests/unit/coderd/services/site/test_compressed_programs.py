"""Compressed forms of programs: made once, kept in bounds, done without where they cannot be had."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
import trio

from coder.coderd.services.site import compressed_programs
from coder.coderd.services.site.compressed_programs import SMALLEST, CompressedPrograms

CODE = b"much the same " * (SMALLEST // 10)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "coder-linux-amd64"
    path.write_bytes(CODE)
    return path


async def test_many_who_ask_at_once_get_one_form(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, really = 0, gzip.GzipFile

    def count(*args: object) -> object:
        nonlocal made
        made += 1
        return really(*args)  # type: ignore[call-overload]

    monkeypatch.setattr(gzip, "GzipFile", count)
    forms = CompressedPrograms(tmp_path / "cache" / "compressed")
    found: list[Path | None] = []

    async def ask() -> None:
        found.append(await forms.gzipped(program, len(CODE), "aa"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert found == [tmp_path / "cache" / "compressed" / "aa.gz"] * 5
    assert made == 1
    assert found[0] is not None and gzip.decompress(found[0].read_bytes()) == CODE
    later = CompressedPrograms(tmp_path / "cache" / "compressed")  # the next server of this folder
    assert await later.gzipped(program, len(CODE), "aa") == found[0]
    assert made == 1


async def test_what_is_too_small_too_large_or_gains_nothing_stays_as_it_is(program: Path, tmp_path: Path) -> None:
    forms = CompressedPrograms(tmp_path / "forms")
    for size in (SMALLEST - 1, compressed_programs.LARGEST + 1):
        assert await forms.gzipped(program, size, "aa") is None
    program.write_bytes(os.urandom(SMALLEST))
    assert await forms.gzipped(program, SMALLEST, "bb") is None
    assert not list((tmp_path / "forms").iterdir())
    program.write_bytes(CODE)
    assert await forms.gzipped(program, len(CODE), "bb") is None, "it is not tried with every request"


async def test_a_folder_that_cannot_be_written_costs_nobody_the_program(program: Path, tmp_path: Path) -> None:
    (tmp_path / "forms").write_text("not a folder")
    assert await CompressedPrograms(tmp_path / "forms").gzipped(program, len(CODE), "aa") is None


async def test_the_form_used_longest_ago_goes_first(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    for number in range(compressed_programs.KEPT):
        (folder / f"{number}.gz").write_bytes(b"")
        os.utime(folder / f"{number}.gz", (number, number))
    forms = CompressedPrograms(folder)
    assert await forms.gzipped(program, len(CODE), "0") is not None  # in use again
    assert await forms.gzipped(program, len(CODE), "new") is not None
    names = {path.stem for path in folder.iterdir()}
    assert len(names) == compressed_programs.KEPT
    assert {"0", "new"} <= names and "1" not in names
