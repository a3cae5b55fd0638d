"""Template examples that are bundled with the server: a folder each in `coderd/examples`, with a README whose front
matter has display_name, description, icon and tags.

Users can create a version from an example; the CLI's `templates init` shows the same list.
"""

from __future__ import annotations

import functools
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coder.api.templates.templates import TemplateExample
from coder.base.json_types import Json, as_object, as_texts
from coder.base.yaml_documents import read_document
from coder.coderd.services.access.authorization import require
from coder.domain.access.policy import Class

if TYPE_CHECKING:
    from coder.domain.access.policy import Subject

_FOLDER = Path(__file__).resolve().parents[2] / "examples"
_URL = "https://github.com/coder/coder/tree/main/examples/templates/"


@dataclass(frozen=True, slots=True)
class Example:
    """A bundled template."""

    id: str
    name: str
    description: str
    icon: str
    tags: tuple[str, ...]
    markdown: str
    archive: bytes
    "Reproducible tar of the example's files."


@functools.cache
def examples() -> tuple[Example, ...]:
    """Return all examples, sorted by id."""
    return tuple(_read(folder) for folder in sorted(_FOLDER.iterdir()) if (folder / "README.md").is_file())


def find_example(example_id: str) -> Example | None:
    return next((example for example in examples() if example.id == example_id), None)


def list_examples(subject: Subject) -> list[TemplateExample]:
    """Return the examples for template authors. Raises NotFound for other users."""
    require(subject, "read", Class("template", any_organization=True))
    return [
        TemplateExample(
            id=example.id,
            url=f"{_URL}{example.id}",
            name=example.name,
            description=example.description,
            icon=example.icon,
            tags=list(example.tags),
            markdown=example.markdown,
        )
        for example in examples()
    ]


def _read(folder: Path) -> Example:
    matter, markdown = split_front_matter((folder / "README.md").read_text(encoding="utf-8"))
    return Example(
        id=folder.name,
        name=str(matter.get("display_name") or folder.name),
        description=str(matter.get("description") or ""),
        icon=str(matter.get("icon") or ""),
        tags=tuple(as_texts(matter.get("tags"))),
        markdown=markdown,
        archive=pack(read_files(folder.name)),
    )


def split_front_matter(text: str) -> tuple[Mapping[str, Json], str]:
    """Return the YAML between two `---` lines at the start, and the rest of the text."""
    if not text.startswith("---\n"):
        return {}, text
    matter, separator, rest = text[4:].partition("\n---\n")
    return (as_object(read_document(matter)), rest.lstrip("\n")) if separator else ({}, text)


def read_files(example_id: str) -> Mapping[str, bytes]:
    """Return an example's files by path. Raises OSError for an unknown example."""
    folder = _FOLDER / example_id
    paths = sorted(item for item in folder.rglob("*") if item.is_file() and "__pycache__" not in item.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a tar of the files. Owner, times and order are fixed: equal files are an equal archive, stored once."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
