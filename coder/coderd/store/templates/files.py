"""Queries about uploaded files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, exists, func, literal_column, select, text
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.engine.sql_types import ColumnValue, ColumnValues
from coder.coderd.store.people.object_counts import lock_objects
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.templates import files, template_version_terraform

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


PIECE = 4 << 20
"""Bytes of a large file in one statement. Postgres reads all earlier ones again, so fewer are faster."""


@dataclass(frozen=True, slots=True)
class FileRow:
    id: UUID
    hash: str
    "SHA-256 of `data`, hexadecimal."
    created_by: UUID
    created_at: datetime
    mimetype: str
    data: bytes


async def get_size(tx: Tx, file_id: UUID) -> int | None:
    """Return the bytes of the file's data; None if it was deleted."""
    statement = select(func.octet_length(files.c.data)).where(files.c.id == file_id)
    return (await tx.execute(statement)).scalar_one_or_none()


async def read_piece(tx: Tx, file_id: UUID, offset: int, size: int = PIECE) -> bytes:
    """Return at most `size` bytes of a file from the offset; empty at its end, or if it was deleted."""
    statement = select(func.substring(files.c.data, offset + 1, size)).where(files.c.id == file_id)
    return (await tx.execute(statement)).scalar_one_or_none() or b""


async def find_file(tx: Tx, digest: str, created_by: UUID) -> UUID | None:
    """Return a user's earlier file with the same content."""
    statement = select(files.c.id).where(files.c.hash == digest, files.c.created_by == created_by)
    return (await tx.execute(statement)).scalar_one_or_none()


async def keep_file(tx: Tx, row: FileRow, content: BinaryIO) -> UUID:
    """Return the user's file with that content, inserting `row` if there is none: concurrent uploads of the same
    content share one file. It stays until the transaction ends."""
    same_content = select(files.c.id).where(files.c.hash == row.hash, files.c.created_by == row.created_by)
    while True:
        result = (await tx.execute(same_content.with_for_update(read=True, key_share=True))).scalar_one_or_none()
        if result is not None:
            return UUID(str(result))
        if await _insert_unless_there(tx, row, content):
            return row.id
        # The conflicting file may have been deleted by now: search again.


async def _insert_unless_there(tx: Tx, row: FileRow, content: BinaryIO) -> bool:
    """Insert `row` with the file's content in place of its own data, a piece at a time: Postgres joins the pieces, and
    this process never holds the whole."""
    content.seek(0)
    piece = content.read(PIECE)
    if len(piece) < PIECE:
        return await _insert(tx, {**_values(row), "data": piece})
    await tx.execute(text("CREATE TEMPORARY TABLE IF NOT EXISTS upload (place integer, data bytea) ON COMMIT DROP"))
    await tx.execute(text("TRUNCATE upload"))
    position = 0
    while piece:
        await tx.execute(text("INSERT INTO upload VALUES (:place, :data)"), {"place": position, "data": piece})
        position, piece = position + 1, content.read(PIECE)
    whole: ColumnElement[bytes] = literal_column("(SELECT string_agg(data, ''::bytea ORDER BY place) FROM upload)")
    return await _insert(tx, {**_values(row), "data": whole})


async def _insert(tx: Tx, values: Mapping[str, ColumnValue]) -> bool:
    statement = insert(files).values(values).on_conflict_do_nothing(index_elements=["hash", "created_by"])
    return (await tx.execute(statement.returning(files.c.id))).first() is not None


def _values(row: FileRow) -> ColumnValues:
    return {name: getattr(row, name) for name in FileRow.__slots__}


def _unused(user_id: UUID) -> ColumnElement[bool]:
    """Return the condition for a user's unused files."""
    job = exists().where(provisioner_jobs.c.file_id == files.c.id)
    modules = exists().where(template_version_terraform.c.module_files_id == files.c.id)
    return and_(files.c.created_by == user_id, ~job, ~modules)


async def count_unused(tx: Tx, user_id: UUID) -> tuple[int, int]:
    """Return (number, bytes). Of two concurrent calls the second counts the first's upload."""
    await lock_objects(tx, "files", user_id)
    size = func.coalesce(func.sum(func.octet_length(files.c.data)), 0)
    count, total = (await tx.execute(select(func.count(), size).where(_unused(user_id)))).one()
    return int(count), int(total)


async def delete_unused(tx: Tx, user_id: UUID, before: datetime) -> None:
    await tx.execute(delete(files).where(_unused(user_id), files.c.created_at < before))
