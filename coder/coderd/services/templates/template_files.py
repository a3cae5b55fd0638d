"""Where the files of template versions are; the sandbox unpacks and parses them (`template_sources.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.foundation.errors import NotFound
from coder.coderd.services.foundation.sandbox import Documents

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


def stored_template(ctx: Context, file_id: UUID, modules_id: UUID | None) -> Documents:
    """An archive and that of the modules its import fetched. Loading raises NotFound."""

    async def load() -> list[bytes]:
        from coder.coderd.store.templates import files as store

        archives = []
        for one in (file_id, modules_id):
            row = await ctx.db.read(store.get_file, one) if one is not None else None
            if row is None and one is file_id:
                raise NotFound("File not found.")
            if row is not None:
                archives.append(row.data)
        return archives

    return Documents(f"{file_id} {modules_id or ''}", load)


def bundled_template(name: str, archive: bytes) -> Documents:
    """A template that comes with the program."""

    async def load() -> list[bytes]:
        return [archive]

    return Documents(f"example {name}", load)
