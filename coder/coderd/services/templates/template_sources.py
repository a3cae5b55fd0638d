"""Archives of templates, unpacked and parsed: what renderings read. Runs in the sandbox."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from coder.coderd.services.templates.archives import MAX_MEMBERS, UNREADABLE, ArchiveError, safe_name_untrusted
from coder.domain.rendering.sources import SUFFIXES, ParsedFiles

MAX_FILE = 1 << 20
"""Bytes. Ours: bigger files are no sources, and a form that shows their content helps nobody."""
MAX_TEMPLATE = 16 << 20
"""Bytes of all files together that are kept of one archive."""
_TREE_COST = 30
"""Measured: a parsed tree takes about thirty times its text."""


def parse_archives(archives: Sequence[BinaryIO]) -> tuple[ParsedFiles, int]:
    """The files of all, parsed, and about how many bytes they take. Never raises for what is in them."""
    found: dict[str, bytes] = {}
    for archive in archives:
        found.update(unpack_untrusted(archive))
    files = ParsedFiles(found)
    files.source("")
    texts = sum(len(data) for name, data in found.items() if name.endswith(SUFFIXES))
    return files, sum(map(len, found.values())) + texts * _TREE_COST


def unpack_untrusted(archive: BinaryIO) -> Mapping[str, bytes]:
    """Regular files by their path from the root. Never raises: of an archive that lies, what came before the lie."""
    found: dict[str, bytes] = {}
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
                found[safe_name_untrusted(member.name)] = data
    except (ArchiveError, *UNREADABLE):
        return found
    return found
