"""Tar archive of a template's directory, without Terraform's working files and secrets."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

from coder.base.errors import CoderError

LIMIT = 100 << 20
"Maximum bytes that the server accepts."
LARGE_FILE = 20 << 20
SKIPPED_DIRECTORIES = {".terraform", ".git"}
TEMPLATE_FILES = (".tf", ".tf.json")


def pack_directory(directory: Path) -> tuple[bytes, list[str]]:
    """Return (tar bytes, skipped relative paths). Symbolic links are followed only inside the directory.

    Raise CoderError if there is no Terraform file or the archive exceeds the server's limit.
    """
    root = directory.resolve()
    names = [item.name for item in root.iterdir()]
    if not any(name.endswith(TEMPLATE_FILES) for name in names):
        raise CoderError(
            "no_template",
            f"{directory} is not a valid template since it has no [{' '.join(TEMPLATE_FILES)}] files",
            "Point -d at the directory with main.tf, or start with `coder templates init`.",
        )
    buffer = io.BytesIO()
    skipped: list[str] = []
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for base, directories, files in os.walk(root):
            directories[:] = sorted(name for name in directories if name not in SKIPPED_DIRECTORIES)
            for name in sorted(files):
                _add(tar, root, Path(base) / name, skipped)
            if buffer.tell() > LIMIT:
                raise CoderError("too_large", f"{directory} exceeds {LIMIT >> 20} MiB", "Leave large files out.")
    return buffer.getvalue(), skipped


def _add(tar: tarfile.TarFile, root: Path, path: Path, skipped: list[str]) -> None:
    relative = str(path.relative_to(root))
    if path.name.startswith("terraform.tfstate") or path.suffix in {".tfvars", ".tfplan"}:
        skipped.append(f"{relative} (state and variable files are not uploaded)")
        return
    target = path.resolve()
    if not target.is_file() or not target.is_relative_to(root):
        skipped.append(f"{relative} (not a file inside the template)")
        return
    size = target.stat().st_size
    if size > LARGE_FILE:
        skipped.append(f"{relative} ({size >> 20} MiB)")
        return
    info = tarfile.TarInfo(relative)
    info.size = size
    info.mode = target.stat().st_mode & 0o755
    info.mtime = int(target.stat().st_mtime)
    with target.open("rb") as file:
        tar.addfile(info, file)
