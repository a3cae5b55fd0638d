"""Reads of uploaded files without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.tables.templates import files
from coder.coderd.store.templates.files import FileRow

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_COLUMNS = tuple(files.c[name] for name in FileRow.__slots__)


async def get_file(tx: Tx, file_id: UUID) -> FileRow | None:
    row = (await tx.execute(select(*_COLUMNS).where(files.c.id == file_id))).one_or_none()
    return None if row is None else FileRow(*row)


async def get_file_head(tx: Tx, file_id: UUID) -> FileRow | None:
    """Return a file without its data."""
    columns = [column for column in _COLUMNS if column.name != "data"]
    row = (await tx.execute(select(*columns).where(files.c.id == file_id))).one_or_none()
    return None if row is None else FileRow(data=b"", **row._mapping)
