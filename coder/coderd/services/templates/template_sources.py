"""Archives of templates, unpacked and parsed for rendering. Runs in the sandbox."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from coder.coderd.services.templates.archives import MAX_MEMBERS, UNREADABLE, ArchiveError, safe_name_untrusted
from coder.domain.rendering.sources import SUFFIXES, ParsedFiles

MAX_FILE = 1 << 20
"""Bytes of a file, our own limit: larger files are no sources, and a form cannot show their content."""
MAX_TEMPLATE = 16 << 20
"""Bytes of all files together that are kept of an archive."""
_TREE_COST = 30
"""Bytes of a parsed tree per byte of its text, as measured."""


def parse_archives(archives: Sequence[BinaryIO]) -> tuple[ParsedFiles, int]:
    """Return the parsed files of all archives, and their estimated bytes. Never raises for their content."""
    contents: dict[str, bytes] = {}
    for archive in archives:
        contents.update(unpack_untrusted(archive))
    files = ParsedFiles(contents)
    files.source("")
    texts = sum(len(data) for name, data in contents.items() if name.endswith(SUFFIXES))
    return files, sum(map(len, contents.values())) + texts * _TREE_COST


def unpack_untrusted(archive: BinaryIO) -> Mapping[str, bytes]:
    """Return regular files by path from the root. Never raises: a malformed archive yields its valid beginning."""
    contents: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for count, member in enumerate(tar):
                if count >= MAX_MEMBERS or total > MAX_TEMPLATE:
                    break
                if not member.isfile() or member.size > MAX_FILE:
                    continue
                content = tar.extractfile(member)
                data = content.read() if content else b""
                total += len(data)
                contents[safe_name_untrusted(member.name)] = data
    except (ArchiveError, *UNREADABLE):
        return contents
    return contents
