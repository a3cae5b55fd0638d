"""Untrusted archives: bombs, traversal, links, garbage."""

from __future__ import annotations

import errno
import io
import stat
import tarfile
import tempfile
import tracemalloc
import zipfile

import pytest

from coder.coderd.services.templates import archives
from coder.coderd.services.templates.archives import ArchiveError, safe_name_untrusted


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return output.getvalue()


def zip_to_tar(data: bytes) -> bytes:
    output = io.BytesIO()
    archives.zip_to_tar(io.BytesIO(data), output)
    return output.getvalue()


def tar_to_zip(data: bytes) -> bytes:
    output = io.BytesIO()
    archives.tar_to_zip(io.BytesIO(data), output)
    return output.getvalue()


def test_zip_tar_round_trip() -> None:
    tar = zip_to_tar(zipped({"main.tf": b"x", "dir/": b"", "dir/a.txt": b"hello"}))
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        assert sorted(archive.getnames()) == ["dir", "dir/a.txt", "main.tf"]
    back = zipfile.ZipFile(io.BytesIO(tar_to_zip(tar)))
    assert back.read("dir/a.txt") == b"hello"


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/../../b", "..\\evil", "C:\\evil", "c:evil"])
def test_names_outside_archive_rejected(name: str) -> None:
    with pytest.raises(ArchiveError):
        safe_name_untrusted(name)


def test_zip_bomb_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_UNPACKED", 1 << 20)
    bomb = zipped({f"{n}.bin": bytes(400_000) for n in range(10)})
    assert len(bomb) < 20_000
    with pytest.raises(ArchiveError, match="unpacks to more"):
        zip_to_tar(bomb)


def test_too_many_members_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    with pytest.raises(ArchiveError, match="members"):
        zip_to_tar(zipped({str(n): b"" for n in range(5)}))


def test_large_central_directory_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_DIRECTORY", 1000)
    zip_to_tar(zipped({"a": b"x" * 5000}))
    with pytest.raises(ArchiveError, match="members"):
        zip_to_tar(zipped({str(number): b"" for number in range(30)}))


def test_links_and_garbage_rejected() -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(ArchiveError, match="symbolic link"):
        zip_to_tar(output.getvalue())
    with pytest.raises(ArchiveError):
        zip_to_tar(b"garbage")
    with pytest.raises(ArchiveError):
        tar_to_zip(b"garbage" * 200)


def test_invalid_member_names() -> None:
    broken = zipped({"\u00e4.tf": b"x"}).replace("\u00e4".encode(), b"\xff\xff")
    with pytest.raises(ArchiveError):
        zip_to_tar(broken)
    with pytest.raises(ArchiveError):
        tar_to_zip(_tar_with_name("n" * 70_000))


class Disk(io.BytesIO):
    """A file whose disk fails after some reads or writes."""

    def __init__(self, number: int, data: bytes = b"", *, reads: int = 1 << 30, writes: int = 1 << 30) -> None:
        super().__init__(data)
        self._number, self._reads, self._writes = number, reads, writes

    def read(self, size: int | None = -1) -> bytes:
        self._reads -= 1
        if self._reads < 0:
            raise OSError(self._number, "of the disk")
        return super().read(size)

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        self._writes -= 1
        if self._writes < 0:
            raise OSError(self._number, "of the disk")
        return super().write(data)


TAR = zip_to_tar(zipped({f"{number}.tf": b"x" * 3000 for number in range(5)}))
CONVERSIONS = {"zip_to_tar": zipped({"main.tf": b"x" * 30_000, "a": b""}), "tar_to_zip": TAR}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG])
@pytest.mark.parametrize("kind", CONVERSIONS)
def test_disk_errors_are_not_archive_errors(kind: str, number: int) -> None:
    """Failures at the beginning, in a member, and in the central directory at the end."""
    convert, data = getattr(archives, kind), CONVERSIONS[kind]
    for count in (0, 1, 2, 3):
        for source, target in (
            (Disk(number, data), Disk(number, writes=count)),
            (Disk(number, data, reads=count), io.BytesIO()),
        ):
            with pytest.raises(OSError, match="of the disk") as caught:
                convert(source, target)
            assert caught.value.errno == number


@pytest.mark.parametrize("number", [errno.EINVAL, None])
@pytest.mark.parametrize("kind", CONVERSIONS)
def test_negative_position_is_archive_error(kind: str, number: int | None) -> None:
    class Lying(Disk):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(*[number, "no such place"][number is None :])

    with pytest.raises(ArchiveError, match="no such place"):
        getattr(archives, kind)(Lying(0, CONVERSIONS[kind]), io.BytesIO())


def _tar_with_name(name: str) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo(name))
    return output.getvalue()


def test_conversion_streams_files() -> None:
    tar = zip_to_tar(zipped({f"{n}.bin": bytes(8 << 20) for n in range(3)}))
    with tempfile.TemporaryFile() as output:
        tracemalloc.start()
        archives.tar_to_zip(io.BytesIO(tar), output)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20, peak
        assert zipfile.ZipFile(output).testzip() is None
