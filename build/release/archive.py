"""Tar archives with the same bytes for the same files: sorted names, one time, no owners."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable

Entry = tuple[tarfile.TarInfo, bytes]


def entry(name: str, data: bytes, mode: int = 0o644) -> Entry:
    """Return a regular file."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    return info, data


def folder(name: str, mode: int = 0o755, *, owner: int = 0) -> Entry:
    """Return a folder."""
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    info.uid = info.gid = owner
    return info, b""


def link(name: str, target: str) -> Entry:
    """Return a symbolic link."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
    return info, b""


def tar(entries: Iterable[Entry], time: int) -> bytes:
    """Return a tar archive of entries in the order of their names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for info, data in sorted(entries, key=lambda item: item[0].name):
            info.mtime = time
            archive.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return buffer.getvalue()


def compressed(data: bytes, level: int = 9) -> bytes:
    """Return bytes in gzip's format, without a time."""
    return gzip.compress(data, level, mtime=0)
