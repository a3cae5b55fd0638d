"""Archives from strangers: zip to tar and back without trusting a name or a size.

A zip is taken apart from file to file. A member whose name leaves the archive's root is refused; so is an archive that
unpacks to more than `MAX_UNPACKED` bytes or `MAX_MEMBERS` members, however small it was packed.
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
"Bytes of a zip's table of contents: four hundred for each member that may be there."
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
"What the standard library raises for archives that lie: names that are not UTF-8, modes and sizes out of range."
_LIES = (None, errno.EINVAL)
"""Numbers of an OSError that is the archive's: none (decompressors), a place before the file's beginning. Any other is
our own disk's, on which archives are converted."""
# Old zip programs write times before 1980 as zero; zip cannot say anything earlier.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class ArchiveError(Exception):
    """The archive is not acceptable; its text says why."""


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    """Raises ArchiveError for what the archive did; what our disk did, as it is."""
    try:
        yield
    except UNREADABLE as error:
        if (failure := _of_our_disk(error)) is not None:
            raise failure from None
        raise ArchiveError(f"not a readable {kind} archive: {error}") from error


def _of_our_disk(error: BaseException) -> OSError | None:
    """The standard library takes some failures of reading for "not a zip file"."""
    chain = causes(error, with_context=True)
    return next((one for one in chain if isinstance(one, OSError) and one.errno not in _LIES), None)


def safe_name_untrusted(name: str) -> str:
    """`name` as a relative path without tricks. Raises ArchiveError."""
    cleaned = name.replace("\\", "/")
    path = PurePosixPath(cleaned)
    if path.is_absolute() or ".." in path.parts or "\x00" in name or (cleaned[1:2] == ":" and cleaned[0].isalpha()):
        raise ArchiveError(f"the archive contains a path outside of itself: {name!r}")
    return str(path)


def zip_to_tar(packed: BinaryIO, output: BinaryIO) -> None:
    """Raises ArchiveError, and OSError for our disk."""
    with _reading("zip"):
        _check_directory(packed)
        with zipfile.ZipFile(packed) as source, tarfile.open(fileobj=output, mode="w") as target:
            for info, content in _zip_members(source):
                with content:
                    target.addfile(info, content if info.isfile() else None)


def _check_directory(packed: BinaryIO) -> None:
    """Before zipfile makes an object of each entry: a hundred megabytes have room for two million."""
    # What ZipFile itself believes, whatever else the file says of itself.
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
    """A file at its end; large ones are on disk."""
    content = tempfile.SpooledTemporaryFile(max_size=_CHUNK, prefix="coder-member-")  # noqa: SIM115 - the caller's
    try:
        with source.open(entry) as member:
            while piece := member.read(_CHUNK):
                # The header's size may lie: count what really comes out.
                if content.tell() + len(piece) > left:
                    raise ArchiveError(f"the archive unpacks to more than {MAX_UNPACKED} bytes")
                content.write(piece)
    except BaseException:
        content.close()
        raise
    return cast("BinaryIO", content)


def _last_of_each(source: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """Members by name: of two of a name the last counts, as for whoever unpacks one after the other."""
    found: dict[str, tarfile.TarInfo] = {}
    for count, member in enumerate(source):
        if count >= MAX_MEMBERS:
            raise ArchiveError(f"the archive has more than {MAX_MEMBERS} members")
        name = safe_name_untrusted(member.name)
        if member.isdir() or member.isfile():
            found[name] = member
    return found


def tar_to_zip(packed: BinaryIO, output: BinaryIO) -> None:
    """From file to file, a piece at a time. Raises ArchiveError, and OSError for our disk."""
    left = MAX_UNPACKED
    with (
        _reading("tar"),
        tarfile.open(fileobj=packed, mode="r:") as source,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name, member in _last_of_each(source).items():
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
