"""Template archives: unpack untrusted uploads, pack module directories.

Unpacking only creates files and directories below the target: no links, no devices, nothing outside, within limits.
"""

from __future__ import annotations

import errno
import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from coder.base.errors import CoderError

MAX_BYTES = 256 * 1024 * 1024
"Bytes (ours): a template is text, and uploads are limited far below this."
MAX_ENTRIES = 20_000
MAX_MODULES = 20 * 1024 * 1024
"Bytes of module files above which they are left out (docs/protocol/provisioners.md#terraform)."


_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"errno values that no archive can cause."


class UnpackError(CoderError):
    def __init__(self, message: str, hint: str = "Pack the template again with `coder templates push`.") -> None:
        super().__init__("bad_archive", message, hint)


def unpack_untrusted(archive: bytes, folder: Path) -> list[str]:
    """Unpack a tar into `folder`; return the names of entries skipped because they are links or devices.

    Raises UnpackError for an entry that points outside, cannot be created here or exceeds a limit.
    """
    skipped: list[str] = []
    total = count = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for entry in tar:
                count += 1
                total += max(0, entry.size)
                if count > MAX_ENTRIES:
                    raise UnpackError(f"the archive has more than {MAX_ENTRIES} entries")
                if total > MAX_BYTES:
                    raise UnpackError(f"the archive unpacks to more than {MAX_BYTES >> 20} MiB")
                try:
                    if not _unpack_entry(tar, entry, folder):
                        skipped.append(entry.name)
                except OSError as error:
                    # An invalid file name, or a file where another entry needs a directory; or the disk is full.
                    text = f"{entry.name[:200]!r} cannot be unpacked: {error.strerror}"
                    if error.errno in _DISK_ERRNOS:
                        raise UnpackError(text, f"The template is fine; check the disk of {folder}.") from error
                    raise UnpackError(text) from error
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise UnpackError("the archive is not a readable tar") from error
    return skipped


def _unpack_entry(tar: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> bool:
    target = folder / safe_path(entry.name)
    if entry.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return True
    if not entry.isreg():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(entry)
    data = b"" if source is None else source.read()
    target.write_bytes(data)
    # Scripts stay executable; nothing becomes writable for other users or gains a special bit.
    target.chmod(0o700 if entry.mode & 0o100 else 0o600)
    return True


def safe_path(name: str) -> PurePosixPath:
    """Return the name as a relative path without `..`. Raises UnpackError."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\x00" in name or (path.parts and ":" in path.parts[0]):
        raise UnpackError(f"the archive holds a path outside of itself: {name!r}")
    return path


def pack_modules(folder: Path, directories: Iterable[str]) -> bytes:
    """Return a tar of `.terraform/modules/modules.json` and the given directories below `folder`.

    Reproducible: sorted, owner 1000, no times, no `.git` (docs/protocol/provisioners.md#terraform).
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        packed: set[str] = set()
        for directory in directories:
            for root, names, files in os.walk(folder / directory):
                names[:] = sorted(name for name in names if name != ".git")
                packed.update(str((Path(root) / file).relative_to(folder)) for file in files if file != ".git")
        packed.add(".terraform/modules/modules.json")
        for name in sorted(packed):
            path = folder / name
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.uid, entry.gid = len(data), 0o644, 1000, 1000
                tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
