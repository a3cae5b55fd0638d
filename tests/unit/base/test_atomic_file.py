"""Files are replaced atomically, and no other user reads them meanwhile."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from coder.base.atomic_file import move_aside, naming, read_lossless, shown, write_atomically


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_mode_ignores_umask(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        write_atomically(path, "grüße\n", mode=mode)
    finally:
        os.umask(before)
    assert path.read_text(encoding="utf-8") == "grüße\n"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [path]


def test_foreign_bytes_round_trip(tmp_path: Path) -> None:
    path, content = tmp_path / "file", b"\xef\xbb\xbfone\r\ntwo\xff\rgr\xc3\xbc\xc3\x9fe\0\n"
    path.write_bytes(content)
    write_atomically(path, read_lossless(path))
    assert path.read_bytes() == content
    assert "grüße" in read_lossless(path) and shown(read_lossless(path)).encode().count(b"\xef\xbf\xbd") == 1


def test_failure_keeps_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    seen: list[int] = []

    def full(self: Path, _target: Path) -> Path:
        seen.append(stat.S_IMODE(self.stat().st_mode))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert seen == [0o600]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full")
def test_full_disk_names_file() -> None:
    with pytest.raises(OSError, match="/home/file") as caught, naming(Path("/home/file")):
        Path("/dev/full").write_text("x")
    assert caught.value.filename == "/home/file"
    with pytest.raises(FileNotFoundError) as missing, naming(Path("/home/file")):
        Path("/nonexistent/other").read_text()
    assert missing.value.filename == "/nonexistent/other", "the system's file name is kept"


@pytest.mark.parametrize("kind", ["file", "folder", "broken link"])
def test_move_aside_overwrites_nothing(tmp_path: Path, kind: str) -> None:
    path, aside, kept = tmp_path / "data", tmp_path / "data-before", []
    for number in range(3):
        if kind == "file":
            path.write_text(str(number))
        elif kind == "folder":
            (path / str(number)).mkdir(parents=True)
        else:
            path.symlink_to(str(number))
        kept.append(move_aside(path, aside))
    assert [one.name for one in kept] == ["data-before", "data-before-2", "data-before-3"]
    for number, one in enumerate(kept):
        if kind == "folder":
            assert [inner.name for inner in one.iterdir()] == [str(number)]
        else:
            assert (one.read_text() if kind == "file" else str(one.readlink())) == str(number)
