"""Uploaded archives: stored as tar, once per user and content; zip is converted both ways in a worker thread."""

from __future__ import annotations

import hashlib
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, BinaryIO, cast
from uuid import UUID

import trio

from coder.api.base.refusals import Conflict, Invalid, NotFound
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.services.templates import archives
from coder.coderd.store.templates import files as store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.files import FileRow
from coder.domain.access.policy import Resource, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

TAR = "application/x-tar"
# A conversion takes a core: two at once, the others wait.
_CONVERSIONS = trio.CapacityLimiter(2)
_ZIPS = ("application/zip", "application/x-zip-compressed")
MAX_UPLOAD = 100 << 20
"""Bytes of one upload, packed."""
MOST_UNUSED, MOST_UNUSED_BYTES = 200, 1 << 30
"""Uploads of one user that no job was made of, ours: every member may upload, and nobody else sees it."""
UNUSED_FOR = timedelta(hours=1)
"""After which they go when there is no room."""


async def upload(ctx: Context, subject: Subject, content_type: str, content: BinaryIO) -> tuple[UUID, bool]:
    """The file's id, and whether it is new. Raises Invalid (type, unreadable or exploding archive),
    Conflict (too many)."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != TAR and kind not in _ZIPS:
        raise Invalid(f'Unsupported content type header "{content_type}".')
    require(subject, "create", Resource("file", owner_id=subject.user_id, any_organization=True), hidden=False)
    if kind not in _ZIPS:
        return await _keep(ctx, subject, content)
    with tempfile.TemporaryFile(prefix="coder-archive-") as tar:
        try:
            await trio.to_thread.run_sync(archives.zip_to_tar, content, tar, limiter=_CONVERSIONS)
        except archives.ArchiveError as error:
            raise Invalid("Failed to convert zip archive to tar.", str(error)) from error
        return await _keep(ctx, subject, tar)


async def _keep(ctx: Context, subject: Subject, content: BinaryIO) -> tuple[UUID, bool]:
    digest = await trio.to_thread.run_sync(_digest, content)
    found = await ctx.db.read(store.find_file, digest, subject.user_id)
    if found is not None:
        return found, False
    row = FileRow(new_uuid(), digest, subject.user_id, ctx.clock.now(), TAR, b"")
    kept = await ctx.db.run(_insert, row, content)
    return kept, kept == row.id


async def _insert(tx: Tx, row: FileRow, content: BinaryIO) -> UUID:
    """Raises Conflict for somebody who uploads and makes nothing of it."""
    kept = await store.keep_file(tx, row, content)
    if kept != row.id or not await _too_much(tx, row):
        return kept
    await store.delete_unused(tx, row.created_by, row.created_at - UNUSED_FOR)
    if await _too_much(tx, row):
        raise Conflict(
            "You have too many uploads that nothing was made of.",
            f"At most {MOST_UNUSED} with {MOST_UNUSED_BYTES >> 20} MiB; what is older than an hour makes room.",
        )
    return kept


async def _too_much(tx: Tx, row: FileRow) -> bool:
    count, size = await store.count_unused(tx, row.created_by)
    return count > MOST_UNUSED or size > MOST_UNUSED_BYTES


def _digest(content: BinaryIO) -> str:
    content.seek(0)
    digest = hashlib.sha256()
    while piece := content.read(store.PIECE):
        digest.update(piece)
    return digest.hexdigest()


async def download(ctx: Context, subject: Subject, file_id: UUID, wanted: str) -> tuple[str, BinaryIO]:
    """(content type, a file at its beginning, which is the caller's to close).

    `wanted` is "" for the archive as stored or "zip". What is large is never in memory as a whole. Raises NotFound,
    Invalid.
    """
    head = await ctx.db.read(store.get_file_head, file_id)
    if head is None or not await _may_read(ctx, subject, head):
        raise NotFound
    if wanted not in {"", "zip"}:
        raise Invalid(f'Unsupported conversion format "{wanted}"', f"{head.mimetype} cannot become {wanted}.")
    stored = await _copy(ctx, file_id)
    if not wanted:
        return head.mimetype, stored
    with stored:
        converted = _scratch()
        try:
            await trio.to_thread.run_sync(archives.tar_to_zip, stored, converted, limiter=_CONVERSIONS)
        except BaseException as error:
            converted.close()
            if isinstance(error, archives.ArchiveError):
                raise Invalid("The file cannot be read as tar.", str(error)) from error
            raise
    converted.seek(0)
    return "application/zip", converted


async def _copy(ctx: Context, file_id: UUID) -> BinaryIO:
    """The content of a file of the database in one of ours."""
    copy = _scratch()
    try:
        await copy_stored(ctx, file_id, copy)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy


async def copy_stored(ctx: Context, file_id: UUID, target: BinaryIO) -> bool:
    """Writes a file of the database to `target`, a piece at a time; whether there is one."""
    place = 0
    while piece := await ctx.db.read(store.read_piece, file_id, place):
        await trio.to_thread.run_sync(target.write, piece)
        place += len(piece)
        if len(piece) < store.PIECE:
            break
    return place > 0 or await ctx.db.read(store.get_file_head, file_id) is not None


def _scratch() -> BinaryIO:
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=store.PIECE, prefix="coder-download-"))


async def require_file(ctx: Context, subject: Subject, file_id: UUID) -> None:
    """For whoever names a file in a request: one the caller may not read is as good as none. Raises NotFound."""
    row = await ctx.db.read(store.get_file_head, file_id)
    if row is None or not await _may_read(ctx, subject, row):
        raise NotFound("File not found.")


async def _may_read(ctx: Context, subject: Subject, row: FileRow) -> bool:
    """Its uploader, site roles, and whoever may change a template made from it."""
    own = row.created_by == subject.user_id  # what organizations grant holds for own files only: they have none
    resource = Resource("file", id=str(row.id), owner_id=row.created_by, any_organization=own)
    if may(subject, "read", resource):
        return True
    found = await ctx.db.read(template_store.list_templates_of_file, row.id)
    return any(may(subject, "update", template_resource(template)) for template in found)
