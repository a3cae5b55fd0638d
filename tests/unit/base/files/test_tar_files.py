"""Archives are extracted below their folder only, with and without tarfile's filter."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from coder.base.files.tar_files import extract_all


def archive(*members: tuple[str, bytes, int], kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarFile:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data, mode in members:
            info = tarfile.TarInfo(name)
            info.mode, info.size, info.type, info.linkname = mode, len(data), kind, target
            info.uid = info.gid = 12345
            tar.addfile(info, io.BytesIO(data))
    return tarfile.open(fileobj=io.BytesIO(buffer.getvalue()))


@pytest.fixture(params=["filter", "older"], autouse=True)
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "older":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    elif not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python has no filter")


def test_files_and_folders(tmp_path: Path) -> None:
    extract_all(archive(("main.tf", b"one", 0o644), ("scripts/run", b"two", 0o777)), tmp_path)
    assert (tmp_path / "main.tf").read_bytes() == b"one" and (tmp_path / "main.tf").stat().st_mode & 0o777 == 0o644
    run = (tmp_path / "scripts/run").stat()
    assert run.st_mode & 0o777 == 0o755 and run.st_uid == tmp_path.stat().st_uid
    extract_all(archive(("scripts", b"", 0o755), kind=tarfile.DIRTYPE), tmp_path)
    assert (tmp_path / "scripts/run").exists()


def test_files_are_new(tmp_path: Path) -> None:
    """The archive's times are of 1970, which zip tools reject."""
    extract_all(archive(("main.tf", b"one", 0o644), ("sub", b"", 0o755)), tmp_path)
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as made:
        made.write(tmp_path / "main.tf")


@pytest.mark.parametrize("name", ["../out", "a/../../out"])
def test_nothing_outside_the_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(tarfile.TarError):
        extract_all(archive((name, b"x", 0o644)), tmp_path / "in")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_rejected(kind: bytes, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(tarfile.TarError):
        extract_all(archive(("it", b"", 0o644), kind=kind, target="../out"), tmp_path / "in")
    assert not (tmp_path / "in/it").is_symlink()
