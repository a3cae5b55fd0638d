"""Untrusted archives: conversion from zip to tar and back without trusting names or sizes.

A zip is converted file by file. A member whose name leaves the archive's root is rejected, and so is an archive that
unpacks to more than `MAX_UNPACKED` bytes or `MAX_MEMBERS` members.
"""

from __future__ import annotations

import errno
import io
import lzma
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from coder.base.errors import causes

MAX_UNPACKED = 100 << 20
MAX_MEMBERS = 20_000
MAX_DIRECTORY = 8 << 20
"Bytes of a zip's central directory: four hundred for each allowed member."
_DIRECTORY_SIZE = 5
_CHUNK = 1 << 20
UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
    OverflowError,
)
"Exceptions of the standard library for malformed archives: names that are not UTF-8, modes and sizes out of range."
_ARCHIVE_ERRNOS = (None, errno.EINVAL)
"""Numbers of an OSError that an archive causes: none (decompressors), a position before the file's beginning. Any other
comes from the server's disk, on which archives are converted."""
# Zip cannot represent times before 1980.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class ArchiveError(Exception):
    """Raised for an unacceptable archive; the text has the reason."""


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    """Raise ArchiveError for errors of the archive, and OSError for errors of the server's disk."""
    try:
        yield
    except UNREADABLE as error:
        if (failure := _disk_error(error)) is not None:
            raise failure from None
        raise ArchiveError(f"not a readable {kind} archive: {error}") from error


def _disk_error(error: BaseException) -> OSError | None:
    """Return the disk's error, which the standard library may report as "not a zip file"; None without one."""
    chain = causes(error, with_context=True)
    return next((cause for cause in chain if isinstance(cause, OSError) and cause.errno not in _ARCHIVE_ERRNOS), None)


def safe_name_untrusted(name: str) -> str:
    """Return `name` as a safe relative path. Raises ArchiveError."""
    cleaned = name.replace("\\", "/")
    path = PurePosixPath(cleaned)
    if path.is_absolute() or ".." in path.parts or "\x00" in name or (cleaned[1:2] == ":" and cleaned[0].isalpha()):
        raise ArchiveError(f"the archive contains a path outside of itself: {name!r}")
    return str(path)


def zip_to_tar(packed: BinaryIO, output: BinaryIO) -> None:
    """Convert a zip to a tar. Raises ArchiveError, and OSError for the server's disk."""
    with _reading("zip"):
        _check_directory(packed)
        with zipfile.ZipFile(packed) as source, tarfile.open(fileobj=output, mode="w") as target:
            for info, content in _zip_members(source):
                with content:
                    target.addfile(info, content if info.isfile() else None)


def _check_directory(packed: BinaryIO) -> None:
    """Check the directory's size before zipfile creates an object per entry: 100 MB have room for two million.

    Raises ArchiveError.
    """
    # This is the record that ZipFile itself uses.
    end = zipfile._EndRecData(packed)  # type: ignore[attr-defined]
    if end and end[_DIRECTORY_SIZE] > MAX_DIRECTORY:
        raise ArchiveError(f"the archive has more than {MAX_MEMBERS} members")


def _zip_members(source: zipfile.ZipFile) -> Iterator[tuple[tarfile.TarInfo, BinaryIO]]:
    entries = source.infolist()
    if len(entries) > MAX_MEMBERS:
        raise ArchiveError(f"the archive has more than {MAX_MEMBERS} members")
    left = MAX_UNPACKED
    for entry in entries:
        info = tarfile.TarInfo(safe_name_untrusted(entry.filename))
        mode = entry.external_attr >> 16
        if stat.S_ISLNK(mode):
            raise ArchiveError(f"the archive contains a symbolic link: {entry.filename!r}")
        if entry.is_dir():
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            yield info, io.BytesIO()
            continue
        content = _read_bounded(source, entry, left)
        info.size, info.mode = content.tell(), stat.S_IMODE(mode) or 0o644
        left -= info.size
        content.seek(0)
        yield info, content


def _read_bounded(source: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> BinaryIO:
    """Return a member's content in a file at its end; large files are on disk."""
    content = tempfile.SpooledTemporaryFile(max_size=_CHUNK, prefix="coder-member-")  # noqa: SIM115 - the caller's
    try:
        with source.open(entry) as member:
            while piece := member.read(_CHUNK):
                # The header's size is untrusted: count the unpacked bytes.
                if content.tell() + len(piece) > left:
                    raise ArchiveError(f"the archive unpacks to more than {MAX_UNPACKED} bytes")
                content.write(piece)
    except BaseException:
        content.close()
        raise
    return cast("BinaryIO", content)


def _members_by_name(source: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """Return members by name; the last of equal names counts, as when unpacking in order."""
    members: dict[str, tarfile.TarInfo] = {}
    for count, member in enumerate(source):
        if count >= MAX_MEMBERS:
            raise ArchiveError(f"the archive has more than {MAX_MEMBERS} members")
        name = safe_name_untrusted(member.name)
        if member.isdir() or member.isfile():
            members[name] = member
    return members


def tar_to_zip(packed: BinaryIO, output: BinaryIO) -> None:
    """Convert a tar to a zip in pieces. Raises ArchiveError, and OSError for the server's disk."""
    left = MAX_UNPACKED
    with (
        _reading("tar"),
        tarfile.open(fileobj=packed, mode="r:") as source,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name, member in _members_by_name(source).items():
            if member.isdir():
                target.writestr(zipfile.ZipInfo(name + "/", _ZIP_EPOCH), b"")
            elif member.isfile():
                left -= member.size
                if left < 0:
                    raise ArchiveError(f"the archive unpacks to more than {MAX_UNPACKED} bytes")
                info = zipfile.ZipInfo(name, _ZIP_EPOCH)
                info.external_attr = (stat.S_IFREG | stat.S_IMODE(member.mode)) << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                info.file_size = member.size
                with target.open(info, "w") as copy, source.extractfile(member) or io.BytesIO() as content:
                    shutil.copyfileobj(content, copy, _CHUNK)
