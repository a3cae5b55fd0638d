"""Bundled example templates for `coder templates init`: the same as the server's, readable without a server."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.files.tar_files import extract_all
from coder.coderd.services.templates.examples import examples as bundled

if TYPE_CHECKING:
    from coder.coderd.services.templates.examples import Example


def examples() -> dict[str, Example]:
    """Return the bundled examples by id."""
    return {example.id: example for example in bundled()}


def unpack_example(ident: str, directory: Path) -> None:
    """Write an example's files. Raise CoderError rather than overwrite a file."""
    unpack_new_files(examples()[ident].archive, directory)


def unpack_new_files(archive: bytes, directory: Path) -> None:
    """Write the files of a tar. Raise CoderError rather than overwrite a file, and for a damaged archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            existing = [member.name for member in tar if not member.isdir() and (directory / member.name).exists()]
            if existing:
                raise CoderError(
                    "exists",
                    f"{directory} already holds {', '.join(existing)}",
                    "Choose another directory, or remove them.",
                )
            directory.mkdir(parents=True, exist_ok=True)
            extract_all(tar, directory)
    except tarfile.TarError as error:
        raise CoderError("bad_archive", f"the archive of the template cannot be read: {error}") from error
