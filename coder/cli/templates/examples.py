"""Bundled example templates for `coder templates init`: the same as the server's, readable without a server."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import coder.coderd
from coder.base.errors import CoderError
from coder.base.tar_files import extract_all

if TYPE_CHECKING:
    from coder.coderd.services.templates.examples import Example


_FOLDER = Path(coder.coderd.__file__).parent / "examples"


def example_ids() -> tuple[str, ...]:
    """Return the names of the bundled examples, without reading them."""
    return tuple(sorted(path.parent.name for path in _FOLDER.glob("*/README.md")))


def examples() -> dict[str, Example]:
    """Return the bundled examples by id."""
    from coder.coderd.services.templates.examples import examples as bundled

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
