"""What differs between two versions of a template: parameters, and the files for callers who may read them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.workspaces.update_previews import UpdatePreviewFile, UpdatePreviewParameter, VersionChanges
from coder.coderd.services.templates.files import may_read_file
from coder.coderd.services.templates.template_sources import unpack_untrusted
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.templates import files as file_store
from coder.coderd.store.templates import system_files, system_template_versions
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates.template_versions import ParameterRow, VersionRow
from coder.domain.templates.version_changes import FileChange, compare_files, compare_parameters

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject

MAX_ARCHIVE = 4 << 20
"""Bytes of an archive that is compared; daemons accept no larger one."""
_COMPARISONS = trio.CapacityLimiter(1)


@dataclass(frozen=True, slots=True)
class _Version:
    row: VersionRow
    file_id: UUID | None
    parameters: list[ParameterRow]


async def compare_versions(
    ctx: Context, subject: Subject, old_id: UUID, new_id: UUID, values: Mapping[str, str] | None
) -> VersionChanges | None:
    """Return the differences; None when a version no longer exists.

    The caller has checked the right to the template. `values` are those that an update would use; None: not known.
    """
    old, new = await ctx.db.read(_load, old_id), await ctx.db.read(_load, new_id)
    if old is None or new is None:
        return None
    files = await _files(ctx, subject, old, new)
    return VersionChanges(
        from_version_id=old.row.id,
        from_version_name=old.row.name,
        to_version_id=new.row.id,
        to_version_name=new.row.name,
        parameters=[
            UpdatePreviewParameter(
                name=item.name,
                change=item.change,
                fields=item.fields,
                required=item.required,
                value=None if item.change == "removed" else (values or {}).get(item.name),
            )
            for item in compare_parameters(old.parameters, new.parameters)
        ],
        files=None
        if files is None
        else [UpdatePreviewFile(path=item.path, change=item.change, diff=item.diff) for item in files[0]],
        files_omitted=0 if files is None else files[1],
    )


async def _load(tx: Tx, version_id: UUID) -> _Version | None:
    row = await system_template_versions.get_version(tx, version_id)
    if row is None:
        return None
    job = await system_jobs.get_job(tx, row.job_id)
    return _Version(row, job.file_id if job else None, await version_store.list_parameters(tx, version_id))


async def _files(ctx: Context, subject: Subject, old: _Version, new: _Version) -> tuple[list[FileChange], int] | None:
    contents: list[bytes] = []
    for version in (old, new):
        if version.file_id is None or not await may_read_file(ctx, subject, version.file_id):
            return None
        if (await ctx.db.read(file_store.get_size, version.file_id) or 0) > MAX_ARCHIVE:
            return None
        file = await ctx.db.read(system_files.get_file, version.file_id)
        if file is None:
            return None
        contents.append(file.data)
    return await trio.to_thread.run_sync(_compare, contents[0], contents[1], limiter=_COMPARISONS)


def _compare(old: bytes, new: bytes) -> tuple[list[FileChange], int]:
    return compare_files(unpack_untrusted(io.BytesIO(old)), unpack_untrusted(io.BytesIO(new)))
