"""Archives from strangers: zip to tar and back without trusting a name or a size.

Nothing is written to disk. A member whose name leaves the archive's root is refused; so is an archive that unpacks
to more than `MAX_UNPACKED` bytes or `MAX_MEMBERS` members, however small it was packed.
"""

from __future__ import annotations

import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

MAX_UNPACKED = 100 << 20
MAX_MEMBERS = 20_000
_CHUNK = 1 << 20
_UNREADABLE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error,
    EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
)  # fmt: skip
"What the standard library raises for archives that lie: names that are not UTF-8, modes and sizes out of range."
# Old zip programs write times before 1980 as zero; zip cannot say anything earlier.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class ArchiveError(Exception):
    """The archive is not acceptable; its text says why."""


def safe_name_untrusted(name: str) -> str:
    """`name` as a relative path without tricks. Raises ArchiveError."""
    cleaned = name.replace("\\", "/")
    path = PurePosixPath(cleaned)
    if path.is_absolute() or ".." in path.parts or "\x00" in name or (cleaned[1:2] == ":" and cleaned[0].isalpha()):
        raise ArchiveError(f"the archive contains a path outside of itself: {name!r}")
    return str(path)


def zip_to_tar(data: bytes) -> bytes:
    """Raises ArchiveError."""
    output = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as source, tarfile.open(fileobj=output, mode="w") as target:
            for info, content in _zip_members(source):
                target.addfile(info, io.BytesIO(content) if info.isfile() else None)
    except _UNREADABLE as error:
        raise ArchiveError(f"not a readable zip archive: {error}") from error
    return output.getvalue()


def _zip_members(source: zipfile.ZipFile) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
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
            yield info, b""
            continue
        content = _read_bounded(source, entry, left)
        left -= len(content)
        info.size, info.mode = len(content), stat.S_IMODE(mode) or 0o644
        yield info, content


def _read_bounded(source: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> bytes:
    # The header's size may lie: count what really comes out.
    pieces, total = [], 0
    with source.open(entry) as member:
        while piece := member.read(_CHUNK):
            total += len(piece)
            if total > left:
                raise ArchiveError(f"the archive unpacks to more than {MAX_UNPACKED} bytes")
            pieces.append(piece)
    return b"".join(pieces)


def tar_to_zip(data: bytes) -> bytes:
    """Raises ArchiveError."""
    output = io.BytesIO()
    left = MAX_UNPACKED
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(data), mode="r:") as source,
            zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target,
        ):
            for count, member in enumerate(source):
                if count >= MAX_MEMBERS:
                    raise ArchiveError(f"the archive has more than {MAX_MEMBERS} members")
                name = safe_name_untrusted(member.name)
                if member.isdir():
                    target.writestr(zipfile.ZipInfo(name + "/", _ZIP_EPOCH), b"")
                elif member.isfile():
                    left -= member.size
                    if left < 0:
                        raise ArchiveError(f"the archive unpacks to more than {MAX_UNPACKED} bytes")
                    info = zipfile.ZipInfo(name, _ZIP_EPOCH)
                    info.external_attr = (stat.S_IFREG | member.mode) << 16
                    info.compress_type = zipfile.ZIP_DEFLATED
                    content = source.extractfile(member)
                    target.writestr(info, content.read() if content else b"")
    except _UNREADABLE as error:
        raise ArchiveError(f"not a readable tar archive: {error}") from error
    return output.getvalue()
