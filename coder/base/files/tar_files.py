"""Extraction of untrusted archives: no entry is written outside of the folder.

Python's own filter does this since 3.11.4 (PEP 706). Debian 12 has 3.11.2, which builds the programs for arm64, armv7
and old glibc; there this module extracts only files and folders, and rejects links.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from coder.base.quoted import quoted


def extract_all(tar: tarfile.TarFile, directory: Path) -> None:
    """Extract all members as new files, as upstream: archives made for comparison have times of 1970, which zip tools
    reject.

    Raises tarfile.TarError or OSError; members before the rejected one have been written by then.
    """
    if hasattr(tarfile, "data_filter"):
        tar.extractall(directory, filter=_as_new_file)  # noqa: S202 - the filter is that of "data"
        return
    root = directory.resolve()
    for member in tar:
        target = (root / member.name).resolve()  # resolves links that existed before, too
        if not target.is_relative_to(root) or not (member.isfile() or member.isdir()):
            raise tarfile.ExtractError(f"{quoted(member.name)} is not a file or folder inside the archive")
        (target if member.isdir() else target.parent).mkdir(parents=True, exist_ok=True)
        data = tar.extractfile(member)
        if data is not None:
            target.write_bytes(data.read())
            target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _as_new_file(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    safe = tarfile.data_filter(member, path)
    return safe.replace(mtime=None, deep=False)  # type: ignore[arg-type] # no time: tarfile sets none
