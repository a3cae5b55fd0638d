"""Untrusted archives."""

from __future__ import annotations

import errno
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.provisionerd import archive
from tests.kit.provisioners.scripted_job_server import tar_of


def _tar(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for entry, data in entries:
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, target, mode
    return entry


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "..\\x", "C:/x"])
def test_escaping_paths_are_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(archive.UnpackError, match="outside of itself"):
        archive.unpack_untrusted(_tar((_entry(name), b"x")), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_links_and_devices_are_skipped(tmp_path: Path) -> None:
    data = _tar(
        (_entry("link", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (_entry("hard", tarfile.LNKTYPE, "main.tf"), b""),
        (_entry("pipe", tarfile.FIFOTYPE), b""),
        (_entry("main.tf"), b"x"),
        (_entry("run.sh", mode=0o4777), b"y"),
    )
    assert archive.unpack_untrusted(data, tmp_path) == ["link", "hard", "pipe"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["main.tf", "run.sh"]
    assert (tmp_path / "run.sh").stat().st_mode & 0o7777 == 0o700
    assert (tmp_path / "main.tf").stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize(
    "entries",
    [
        [""],
        ["."],
        ["a", "a/b"],
        ["a/", "a"],
        ["a", "a/"],
        ["n" * 300],
        ["/".join(["d" * 200] * 30)],
        ["a\udcff/" + "b" * 300],
    ],
    ids=lambda names: names[-1][:10] or "empty",
)
def test_impossible_names_are_rejected(tmp_path: Path, entries: list[str]) -> None:
    """Empty or overlong names, and files in place of directories: the error names the entry."""
    made = [(_entry(name, tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE), b"") for name in entries]
    with pytest.raises(archive.UnpackError, match="cannot be unpacked"):
        archive.unpack_untrusted(_tar(*made), tmp_path)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    with pytest.raises(archive.UnpackError, match="more than 3 entries"):
        archive.unpack_untrusted(tar_of({str(index): "" for index in range(5)}), tmp_path)
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    with pytest.raises(archive.UnpackError, match="more than 1 MiB"):
        archive.unpack_untrusted(tar_of({"big": b"\x00" * (2 << 20)}), tmp_path)


@given(st.binary(max_size=2000))
def test_invalid_tar_is_rejected(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    try:
        archive.unpack_untrusted(data, tmp_path_factory.mktemp("x"))
    except archive.UnpackError:
        pass


def test_module_archive_is_reproducible(tmp_path: Path) -> None:
    modules = tmp_path / ".terraform" / "modules"
    (modules / "m" / ".git").mkdir(parents=True)
    (modules / "modules.json").write_text("{}")
    (modules / "m" / "main.tf").write_text("x")
    (modules / "m" / ".git" / "config").write_text("secret")
    packed = archive.pack_modules(tmp_path, [".terraform/modules/m"])
    (modules / "m" / "main.tf").touch()
    assert archive.pack_modules(tmp_path, [".terraform/modules/m"]) == packed
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert [(one.name, one.uid, one.mtime) for one in tar] == [
            (".terraform/modules/m/main.tf", 1000, 0),
            (".terraform/modules/modules.json", 1000, 0),
        ]


@pytest.mark.parametrize(
    ("number", "is_ours"), [(errno.ENOSPC, True), (errno.EROFS, True), (errno.ENAMETOOLONG, False)]
)
def test_full_disk_blames_disk(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_ours: bool) -> None:
    def write(_self: Path, _data: bytes) -> int:
        raise OSError(number, "does not work")

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(archive.UnpackError, match="cannot be unpacked: does not work") as caught:
        archive.unpack_untrusted(_tar((_entry("main.tf"), b"x")), tmp_path)
    assert ("check the disk" in caught.value.hint) is is_ours
    assert ("Pack the template again" in caught.value.hint) is not is_ours
