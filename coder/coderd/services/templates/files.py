"""Uploaded archives: stored as tar, once per user and content; zip is converted both ways in a worker thread."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
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
from coder.coderd.store.templates import system_files, system_templates
from coder.coderd.store.templates.files import FileRow
from coder.domain.access.policy import Class, Object, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

TAR = "application/x-tar"
# A conversion takes a core: two run concurrently, the others wait.
_CONVERSIONS = trio.CapacityLimiter(2)
_ZIPS = ("application/zip", "application/x-zip-compressed")
MAX_UPLOAD = 100 << 20
"""Bytes of an upload, packed."""
MAX_UNUSED, MAX_UNUSED_BYTES = 200, 1 << 30
"""Uploads of a user without a job, our own limit: every member may upload, and nothing else bounds uploads."""
UNUSED_FOR = timedelta(hours=1)
"""Age after which unused uploads are deleted to make room."""


async def upload(ctx: Context, subject: Subject, content_type: str, content: BinaryIO) -> tuple[UUID, bool]:
    """Store an upload; return the file's id, and whether it is new.

    Raises Invalid (type, unreadable archive, archive that unpacks too large), Conflict (too many).
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind != TAR and kind not in _ZIPS:
        raise Invalid(f'Unsupported content type header "{content_type}".')
    require(subject, "create", Class("file", owner_id=subject.user_id, any_organization=True), hidden=False)
    if kind not in _ZIPS:
        return await _keep(ctx, subject, content)
    with tempfile.TemporaryFile(prefix="coder-archive-") as tar:
        try:
            await trio.to_thread.run_sync(archives.zip_to_tar, content, tar, limiter=_CONVERSIONS)
        except archives.ArchiveError as error:
            if zipfile.is_zipfile(content):
                raise Invalid("Failed to convert zip archive to tar.", str(error)) from error
            raise Invalid("Incomplete .zip archive file.", "zip: not a valid zip file") from error
        return await _keep(ctx, subject, tar)


async def _keep(ctx: Context, subject: Subject, content: BinaryIO) -> tuple[UUID, bool]:
    digest = await trio.to_thread.run_sync(_digest, content)
    known_id = await ctx.db.read(store.find_file, digest, subject.user_id)
    if known_id is not None:
        return known_id, False
    row = FileRow(new_uuid(), digest, subject.user_id, ctx.clock.now(), TAR, b"")
    file_id = await ctx.db.run(_insert, row, content)
    return file_id, file_id == row.id


async def _insert(tx: Tx, row: FileRow, content: BinaryIO) -> UUID:
    """Insert a file. Raises Conflict for a user with too many unused uploads."""
    file_id = await store.keep_file(tx, row, content)
    if file_id != row.id or not await _exceeds_limit(tx, row):
        return file_id
    await store.delete_unused(tx, row.created_by, row.created_at - UNUSED_FOR)
    if await _exceeds_limit(tx, row):
        raise Conflict(
            "You have too many unused uploads.",
            f"The limit is {MAX_UNUSED} files and {MAX_UNUSED_BYTES >> 20} MiB. They are deleted after an hour.",
        )
    return file_id


async def _exceeds_limit(tx: Tx, row: FileRow) -> bool:
    count, size = await store.count_unused(tx, row.created_by)
    return count > MAX_UNUSED or size > MAX_UNUSED_BYTES


def _digest(content: BinaryIO) -> str:
    content.seek(0)
    digest = hashlib.sha256()
    while piece := content.read(store.PIECE):
        digest.update(piece)
    return digest.hexdigest()


async def download(ctx: Context, subject: Subject, file_id: UUID, target_format: str) -> tuple[str, BinaryIO]:
    """Return the content type and a file at its beginning, which the caller closes.

    `target_format` is "" for the archive as stored, or "zip". Large files are never in memory as a whole. Raises
    NotFound, Invalid.
    """
    head = await ctx.db.read(system_files.get_file_head, file_id)
    if head is None or not await _may_read(ctx, subject, head):
        raise NotFound
    if target_format not in {"", "zip"}:
        raise Invalid(f'Unsupported conversion format "{target_format}"')
    stored = await _copy(ctx, file_id)
    if not target_format:
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
    """Return a temporary copy of a stored file, at its beginning."""
    copy = _scratch()
    try:
        await copy_stored(ctx, file_id, copy)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy


async def copy_stored(ctx: Context, file_id: UUID, target: BinaryIO) -> bool:
    """Write a stored file to `target` in pieces; return whether the file exists."""
    offset = 0
    while piece := await ctx.db.read(store.read_piece, file_id, offset):
        await trio.to_thread.run_sync(target.write, piece)
        offset += len(piece)
        if len(piece) < store.PIECE:
            break
    return offset > 0 or await ctx.db.read(system_files.get_file_head, file_id) is not None


def _scratch() -> BinaryIO:
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=store.PIECE, prefix="coder-download-"))


async def require_file(ctx: Context, subject: Subject, file_id: UUID) -> None:
    """Require a file that the caller may read. Raises NotFound."""
    if not await may_read_file(ctx, subject, file_id):
        raise NotFound("File not found.")


async def may_read_file(ctx: Context, subject: Subject, file_id: UUID) -> bool:
    """Return whether the file exists and the caller may read it."""
    row = await ctx.db.read(system_files.get_file_head, file_id)
    return row is not None and await _may_read(ctx, subject, row)


async def _may_read(ctx: Context, subject: Subject, row: FileRow) -> bool:
    """Return whether the caller uploaded the file, has a site role, or may change a template created from it."""
    own = row.created_by == subject.user_id  # files have no organization, so organization roles cover own files only
    resource = Object("file", str(row.id), owner_id=row.created_by, any_organization=own)
    if may(subject, "read", resource):
        return True
    templates = await ctx.db.read(system_templates.list_templates_of_file, row.id)
    return any(may(subject, "update", template_resource(template)) for template in templates)
