"""Bundled example templates for `coder templates init`: the same as the server's, readable without a server."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.tar_files import extract_all
from coder.coderd.services.templates.examples import examples as bundled

if TYPE_CHECKING:
    from coder.coderd.services.templates.examples import Example


def examples() -> dict[str, Example]:
    """Return the bundled examples by id."""
    return {example.id: example for example in bundled()}


def unpack_example(ident: str, directory: Path) -> None:
    """Write an example's files. Raise CoderError rather than overwrite a file."""
    example = examples()[ident]
    with tarfile.open(fileobj=io.BytesIO(example.archive)) as tar:
        names = [member.name for member in tar.getmembers()]
        existing = [name for name in names if (directory / name).exists()]
        if existing:
            raise CoderError(
                "exists",
                f"{directory} already holds {', '.join(existing)}",
                "Choose another directory, or remove them.",
            )
        directory.mkdir(parents=True, exist_ok=True)
        extract_all(tar, directory)
