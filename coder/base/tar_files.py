"""Unpacking archives of other people: nothing of them comes to lie outside of the folder.

Python's own filter does it since 3.11.4 (PEP 706). Debian 12 has 3.11.2, which the programs for arm64, armv7 and old
glibc are made of; there the plain part is done here: files and folders, and a link is refused.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from coder.base.quoted import quoted


def extract_all(tar: tarfile.TarFile, directory: Path) -> None:
    """Raises tarfile.TarError or OSError; what came before the member that is refused is there by then."""
    if hasattr(tarfile, "data_filter"):
        tar.extractall(directory, filter="data")
        return
    root = directory.resolve()
    for member in tar:
        place = (root / member.name).resolve()  # through links that were there before, too
        if not place.is_relative_to(root) or not (member.isfile() or member.isdir()):
            raise tarfile.ExtractError(f"{quoted(member.name)} is no file or folder of this archive's own")
        (place if member.isdir() else place.parent).mkdir(parents=True, exist_ok=True)
        data = tar.extractfile(member)
        if data is not None:
            place.write_bytes(data.read())
            place.chmod(0o755 if member.mode & 0o100 else 0o644)
