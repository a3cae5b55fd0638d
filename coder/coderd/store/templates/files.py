"""Queries about uploaded files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import insert, select

from coder.coderd.store.tables.identity import files

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class FileRow:
    id: UUID
    hash: str
    "SHA-256 of `data`, hexadecimal."
    created_by: UUID
    created_at: datetime
    mimetype: str
    data: bytes


_COLUMNS = tuple(files.c[name] for name in FileRow.__slots__)


async def get_file(tx: Tx, file_id: UUID) -> FileRow | None:
    row = (await tx.execute(select(*_COLUMNS).where(files.c.id == file_id))).one_or_none()
    return None if row is None else FileRow(*row)


async def find_file(tx: Tx, digest: str, created_by: UUID) -> UUID | None:
    """The file a user uploaded before with the same content."""
    statement = select(files.c.id).where(files.c.hash == digest, files.c.created_by == created_by)
    return (await tx.execute(statement)).scalar_one_or_none()


async def insert_file(tx: Tx, row: FileRow) -> None:
    await tx.execute(insert(files).values({name: getattr(row, name) for name in FileRow.__slots__}))
