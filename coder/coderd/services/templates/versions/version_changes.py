"""Changes of template versions: renaming, archiving, and canceling their import."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Failed, Invalid, NotFound
from coder.api.templates.template_versions import (
    PatchTemplateVersionRequest,
    TemplateVersion,
)
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import lock_template, template_resource
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.provisioning.jobs import cancel_job
from coder.coderd.services.templates.versions.loaded_versions import find_version, load_version, lock_version
from coder.coderd.services.templates.versions.new_template_versions import name_conflict, name_taken
from coder.coderd.services.templates.versions.template_versions import show_version
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.template_versions import VersionChanges, VersionRow
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def update_version(
    ctx: Context, subject: Subject, version_id: UUID, body: PatchTemplateVersionRequest
) -> TemplateVersion:
    """Rename a version or change its message. Raises InvalidFields, Conflict, Forbidden."""
    loaded = await load_version(ctx, subject, version_id)
    check_request(body, {"name": loaded.version.name, "message": loaded.version.message})
    is_taken = await ctx.db.read(_is_taken, loaded.version, body.name or "")
    if is_taken:
        raise name_conflict(str(body.name))  # readers hear this before their missing permission
    require(subject, "update", loaded.resource)
    changes: VersionChanges = {"updated_at": ctx.clock.now()}
    if body.name:
        changes["name"] = body.name
    if isinstance(body.message, str):
        changes["message"] = body.message
    with constraint_refusals(name_taken(body.name)):
        await ctx.db.run(_write, subject, version_id, changes)
    return await show_version(ctx, loaded.version.id)


async def _is_taken(tx: Tx, version: VersionRow, name: str) -> bool:
    if not name or version.template_id is None or version.name == name:
        return False
    return await system_template_versions.get_view_by_name(tx, version.template_id, name) is not None


async def _write(tx: Tx, subject: Subject, version_id: UUID, changes: VersionChanges) -> None:
    await lock_version(tx, subject, version_id)
    await store.update_version(tx, version_id, **changes)


async def cancel_import(ctx: Context, subject: Subject, version_id: UUID) -> None:
    """Cancel a version's import. Raises Invalid when the import already ended or was canceled."""
    await load_version(ctx, subject, version_id, "update")
    await ctx.db.run(_cancel, subject, version_id, ctx.clock.now())


async def _cancel(tx: Tx, subject: Subject, version_id: UUID, now: datetime) -> None:
    await cancel_job(tx, (await lock_version(tx, subject, version_id)).job.id, now)


async def archive_version(ctx: Context, subject: Subject, version_id: UUID, *, archived: bool) -> None:
    """Archive or unarchive a version. Raises Invalid when that is its state already, Failed when it is in use."""
    loaded = await ctx.db.read(find_version, version_id)
    if loaded is None or not may(subject, "update", loaded.resource):
        # Upstream answers Not Found to readers without permission to archive.
        raise NotFound("Template or template versions not found.")
    await ctx.db.run(_archive, subject, version_id, archived, ctx.clock.now())


async def _archive(tx: Tx, subject: Subject, version_id: UUID, archived: bool, now: datetime) -> None:
    await lock_version(tx, subject, version_id)
    version = await system_template_versions.get_version(tx, version_id, lock=True)
    if version is None:
        raise NotFound
    if version.archived == archived:
        raise Invalid(f"Template version already {'archived' if archived else 'unarchived'}")
    if archived and await template_store.uses_version(tx, version_id):
        raise Failed(
            "Internal error fetching template version.",
            "Unable to archive specified version, the version is likely in use by a workspace or currently set "
            "to the active version",
        )
    await store.update_version(tx, version_id, archived=archived, updated_at=now)


async def archive_unused(ctx: Context, subject: Subject, template_id: UUID, *, everything: bool) -> list[UUID]:
    """Archive failed versions, or all versions that are not in use; return their ids."""
    template = await ctx.db.read(system_templates.get_template, template_id)
    if template is None or template.deleted or not may(subject, "read", template_resource(template)):
        raise NotFound
    if not may(subject, "update", template_resource(template)):
        raise NotFound("Template or template versions not found.")
    return await ctx.db.run(_archive_unused, subject, template_id, not everything, ctx.clock.now())


async def _archive_unused(tx: Tx, subject: Subject, template_id: UUID, only_failed: bool, now: datetime) -> list[UUID]:
    await lock_template(tx, subject, template_id)
    return await store.archive_unused(tx, template_id, only_failed=only_failed, now=now)
