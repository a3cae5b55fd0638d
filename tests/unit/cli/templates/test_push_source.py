"""Source of `templates push`: the flag, an archive on standard input, or the current directory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import socket
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from coder.base.errors import CoderError
from coder.cli.core.parsing import parse
from coder.cli.declarations.templates.push import PUSH
from coder.cli.templates.push_source import Source, is_archive, plain_archive, source_of


def tar_archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("./main.tf"))
    return buffer.getvalue()


def zip_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("main.tf", "")
    return buffer.getvalue()


def of_pipe(data: bytes, _folder: Path) -> IO[str]:
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    return os.fdopen(read)


def of_file(data: bytes, folder: Path) -> IO[str]:
    (folder / "input").write_bytes(data)
    return (folder / "input").open()


def of_socket(data: bytes, _folder: Path) -> IO[str]:
    """The input of a command that `ssh host` runs."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(data)
    return os.fdopen(theirs.detach())


def source(*words: str) -> Source:
    return source_of(parse(PUSH, ["name", *words], {}))


@pytest.mark.parametrize("stream", [of_pipe, of_file, of_socket])
@pytest.mark.parametrize(
    ("data", "path"),
    [(tar_archive(), "-"), (zip_archive(), "-"), (b"", "."), (b"yes\n" * 100, "."), ("é\n".encode(), ".")],
    ids=["tar", "zip", "empty", "answers", "text"],
)
def test_archive_is_read_without_flag(
    stream: Callable[[bytes, Path], IO[str]], data: bytes, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stream(data, tmp_path) as opened:
        monkeypatch.setattr(sys, "stdin", opened)
        assert source() == Source(path)
        assert opened.buffer.read() == data  # type: ignore[attr-defined] # for the upload, or the answers of prompts


def test_lines_of_a_file_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop `while read name; do … done < names` runs for every line."""
    with of_file(b"one\ntwo\n", tmp_path) as opened:
        monkeypatch.setattr(sys, "stdin", opened)
        assert source() == Source(".")
        assert os.read(opened.fileno(), 100) == b"one\ntwo\n"


@pytest.mark.parametrize("data", [tar_archive(), zip_archive(), bytes(1024)], ids=["tar", "zip", "empty tar"])
def test_archives_are_uploaded(data: bytes) -> None:
    assert plain_archive(data, "x") == data
    assert is_archive(gzip.compress(data)[:512])
    assert plain_archive(gzip.compress(data), "x") == data


OTHER_DATA: dict[str, tuple[Callable[[], bytes], str]] = {
    "xz": (lambda: lzma.compress(tar_archive()), "x is compressed with xz"),
    "bzip2": (lambda: bz2.compress(tar_archive()), "x is compressed with bzip2"),
    "zstd": (lambda: b"\x28\xb5\x2f\xfd\x00", "x is compressed with zstd"),
    "xz in gzip": (lambda: gzip.compress(lzma.compress(b"")), "x is compressed with xz"),
    "cut gzip": (lambda: gzip.compress(tar_archive())[:-9], "x is no complete gzip archive"),
    "head of gzip": (lambda: b"\x1f\x8bx", "x is no complete gzip archive"),
    "text in gzip": (lambda: gzip.compress(b"text"), "x is no tar or zip archive"),
    "text": (lambda: b'resource "x" "y" {}', "x is no tar or zip archive"),
    "nothing": (lambda: b"", "x is no tar or zip archive"),
    "too much in gzip": (lambda: gzip.compress(bytes(101 << 20), 1), "the archive in x exceeds 100 MiB"),
}
"""Made by the test itself: gzip writes the time, and all workers must collect the same names."""


@pytest.mark.parametrize("name", OTHER_DATA)
def test_other_data_are_refused(name: str) -> None:
    data, reason = OTHER_DATA[name]
    with pytest.raises(CoderError, match=reason):
        plain_archive(data(), "x")


@pytest.mark.parametrize("words", [["-d", "."], ["--directory", "."], ["-d", "x"]])
def test_flag_leaves_input_unread(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with of_pipe(tar_archive(), tmp_path) as opened:
        monkeypatch.setattr(sys, "stdin", opened)
        assert source(*words) == Source(words[1])


def test_other_inputs_are_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nothing, io.TextIOWrapper(io.BytesIO(tar_archive())) as no_file:
        for opened in (nothing, no_file):
            monkeypatch.setattr(sys, "stdin", opened)
            assert source() == Source(".")
    assert source() == Source(".")  # closed


def test_archive_needs_a_name() -> None:
    with pytest.raises(CoderError, match="name is required"):
        Source("-").name()
    assert Source("/templates/docker").name() == "docker"


@pytest.mark.parametrize(
    ("first", "is_one"), [(tar_archive()[:512], True), (b"PK\x03\x04", True), (b"y\n", False), (b"", False)]
)
def test_first_bytes_show_archive(first: bytes, is_one: bool) -> None:
    assert is_archive(first) is is_one
