"""Sources of template files; the sandbox unpacks and parses them (`template_sources.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.base.refusals import NotFound
from coder.coderd.services.foundation.sandbox import Documents, NewFile
from coder.coderd.services.templates.files import copy_stored

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


def stored_template(ctx: Context, file_id: UUID, modules_id: UUID | None) -> Documents:
    """Return a version's archive, with the archive of modules that its import fetched. Loading raises NotFound."""

    async def load(new_file: NewFile) -> None:
        if not await copy_stored(ctx, file_id, new_file()):
            raise NotFound("File not found.")
        if modules_id is not None:
            await copy_stored(ctx, modules_id, new_file())

    return Documents(f"{file_id} {modules_id or ''}", load)


def bundled_template(name: str, archive: bytes) -> Documents:
    """Return a template that is bundled with the program."""

    async def load(new_file: NewFile) -> None:
        await trio.to_thread.run_sync(new_file().write, archive)

    return Documents(f"example {name}", load)
