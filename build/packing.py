"""Packing of PyInstaller's folders into one file: launcher, slim program, remainder, trailer (`launcher.c` reads it).

The same input gives the same bytes: sorted names, no times, no owners, one compressor with fixed settings.
"""

from __future__ import annotations

import hashlib
import io
import struct
import subprocess
import tarfile
from pathlib import Path

MAGIC = b"CODERPK2"
KEY_LENGTH = 32
TRAILER = struct.Struct(f"<QQ{KEY_LENGTH}s{KEY_LENGTH}s{len(MAGIC)}s")


def key_of(payload: bytes) -> bytes:
    return hashlib.sha256(payload).hexdigest()[:KEY_LENGTH].encode()


def slim_program(launcher: bytes, slim: bytes) -> bytes:
    """Write the slim program's file."""
    return launcher + slim + TRAILER.pack(len(launcher), 0, b"\0" * KEY_LENGTH, key_of(slim), MAGIC)


def full_program(launcher: bytes, slim: bytes, rest: bytes) -> bytes:
    """Write the full program's file, which contains `slim_program`."""
    end = len(launcher) + len(slim)
    return launcher + slim + rest + TRAILER.pack(len(launcher), end, key_of(slim), key_of(slim + rest), MAGIC)


def write(target: Path, data: bytes) -> None:
    """Write to a temporary file and rename it, so that a server never serves a partial file."""
    temporary = target.with_name(f".{target.name}.new")
    temporary.write_bytes(data)
    temporary.chmod(0o755)
    temporary.replace(target)


def pack(folder: Path, level: int, *, without: Path | None = None) -> bytes:
    """Return a zstd-compressed GNU tar of the folder's content; with `without`, only the differences."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    if without is not None:
        names = [name for name in names if not _same(folder / name, without / name)]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            _add(tar, folder / name, name)
    command = ["zstd", f"-{level}", "--check", "--long=24", "-T1", "-q", "-c"]
    return subprocess.run(command, input=buffer.getvalue(), capture_output=True, check=True).stdout


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    info = tar.gettarinfo(path, name)
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    if info.isdir():
        info.mode = 0o755
    if not info.isreg():
        tar.addfile(info)
        return
    info.type = tarfile.REGTYPE  # a hard link would require its target to be unpacked first
    info.size = path.stat().st_size
    info.mode = 0o755 if info.mode & 0o100 else 0o644
    with path.open("rb") as file:
        tar.addfile(info, file)


def _same(left: Path, right: Path) -> bool:
    if left.is_symlink() or right.is_symlink():
        return left.is_symlink() and right.is_symlink() and left.readlink() == right.readlink()
    if left.is_dir() or right.is_dir():
        return left.is_dir() and right.is_dir()
    if not right.exists() or left.stat().st_size != right.stat().st_size:
        return False
    return left.stat().st_mode & 0o100 == right.stat().st_mode & 0o100 and left.read_bytes() == right.read_bytes()
