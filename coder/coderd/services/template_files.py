"""The files of template versions, unpacked and parsed once: what renderings read.

Unpacking and parsing happen in worker threads. What was parsed is remembered within a fixed amount of memory, the
least recently used going first; a template above the limit is rendered all the same, just not remembered.
"""

from __future__ import annotations

import io
import tarfile
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.coderd.services.archives import MAX_MEMBERS, ArchiveError, safe_name_untrusted
from coder.coderd.services.errors import NotFound
from coder.coderd.store import files as store
from coder.domain.rendering.sources import SUFFIXES, ParsedFiles

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

MAX_FILE = 1 << 20
"""Bytes. Ours: bigger files are no sources, and a form that shows their content helps nobody."""
MAX_TEMPLATE = 16 << 20
"""Bytes of all files together that are kept of one archive."""
MAX_REMEMBERED = 24 << 20
"""Estimated bytes of everything remembered."""
_TREE_COST = 30
"""Measured: a parsed tree takes about thirty times its text."""


class TemplateFiles:
    """The cache; one a server (`ctx.part(TemplateFiles)`)."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._kept: OrderedDict[tuple[UUID, UUID | None], tuple[ParsedFiles, int]] = OrderedDict()
        self._size = 0
        self._loading: dict[tuple[UUID, UUID | None], trio.Event] = {}

    async def load(self, file_id: UUID, modules_id: UUID | None) -> ParsedFiles:
        """The archive's files with those of the modules its import fetched. Raises NotFound."""
        key = (file_id, modules_id)
        while key in self._loading:  # somebody else reads it: the second one waits instead of reading it again
            await self._loading[key].wait()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        done = self._loading[key] = trio.Event()
        try:
            files, cost = await self._read(file_id, modules_id)
            self._remember(key, files, cost)
        finally:
            del self._loading[key]
            done.set()
        return files

    async def _read(self, file_id: UUID, modules_id: UUID | None) -> tuple[ParsedFiles, int]:
        archives = []
        for one in (file_id, modules_id):
            row = await self._ctx.db.read(store.get_file, one) if one is not None else None
            if row is None and one is file_id:
                raise NotFound("File not found.")
            if row is not None:
                archives.append(row.data)
        return await trio.to_thread.run_sync(_parse, archives)

    def _remember(self, key: tuple[UUID, UUID | None], files: ParsedFiles, cost: int) -> None:
        if cost > MAX_REMEMBERED:
            return
        self._kept[key] = (files, cost)
        self._size += cost
        while self._size > MAX_REMEMBERED:
            self._size -= self._kept.popitem(last=False)[1][1]


def _parse(archives: list[bytes]) -> tuple[ParsedFiles, int]:
    found: dict[str, bytes] = {}
    for archive in archives:
        found.update(unpack_untrusted(archive))
    files = ParsedFiles(found)
    files.source("")
    texts = sum(len(data) for name, data in found.items() if name.endswith(SUFFIXES))
    return files, sum(map(len, found.values())) + texts * _TREE_COST


def unpack_untrusted(archive: bytes) -> Mapping[str, bytes]:
    """Regular files by their path from the root. Never raises: of an archive that lies, what came before the lie."""
    found: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for count, member in enumerate(tar):
                if count >= MAX_MEMBERS or total > MAX_TEMPLATE:
                    break
                if not member.isfile() or member.size > MAX_FILE:
                    continue
                content = tar.extractfile(member)
                data = content.read() if content else b""
                total += len(data)
                found[safe_name_untrusted(member.name)] = data
    except (tarfile.TarError, ArchiveError, EOFError, OSError, ValueError):
        return found
    return found
