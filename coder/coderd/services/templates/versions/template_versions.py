"""Template versions, as users read and list them.

A version without a template is visible to users who may create templates, a version with a template to users who may
read the template. Creation is `new_template_versions.py`, changes are `version_changes.py`, results of the import
`version_contents.py`; the import is a job (`services/templates/imports/import_messages.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid, NotFound
from coder.api.templates.template_versions import (
    TemplateVersion,
)
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import load_template, template_resource
from coder.coderd.services.provisioning.jobs import load_queue_positions, match_provisioners
from coder.coderd.services.templates.versions.loaded_versions import load_version
from coder.coderd.services.templates.versions.template_version_view import (
    present_version,
)
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.templates import system_template_versions, system_templates
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates.template_versions import VersionView
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.access.policy import Subject
from coder.domain.provisioning.queue import NO_POSITION

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


_NIL = UUID(int=0)


async def get_version(ctx: Context, subject: Subject, version_id: UUID) -> TemplateVersion:
    loaded = await load_version(ctx, subject, version_id)
    return await show_version(ctx, loaded.version.id)


async def show_version(ctx: Context, version_id: UUID) -> TemplateVersion:
    """Return a version as JSON, without a check of permissions. Raises NotFound."""
    version = await ctx.db.read(_read_version, version_id, ctx.clock.now(), ctx.config.provisioner_strict_tags)
    if not version:
        raise NotFound
    return version


async def _read_version(tx: Tx, version_id: UUID, now: datetime, strict: bool) -> TemplateVersion | None:
    view = await system_template_versions.get_view(tx, version_id)
    if view is None:
        return None
    version = (await _present_all(tx, [view], now, strict))[0]
    if isinstance(version.job.completed_at, datetime) and version.job.completed_at > view.version.updated_at:
        # The import ended between the two statements, so the version is outdated. A client that waits for the end must
        # not get it.
        view = await system_template_versions.get_view(tx, version_id) or view
        version = (await _present_all(tx, [view], now, strict))[0]
    return version


async def _present_all(tx: Tx, views: Sequence[VersionView], now: datetime, strict: bool) -> list[TemplateVersion]:
    jobs = await system_jobs.get_jobs(tx, [view.version.job_id for view in views])
    places = await load_queue_positions(tx, list(jobs.values()), now, strict=strict)
    versions = []
    for view in views:
        job = jobs[view.version.job_id]
        is_pending = job.status == "pending"
        matched = await match_provisioners(tx, job, now, strict=strict) if is_pending else None
        versions.append(present_version(view, job, places.get(job.id, NO_POSITION), matched=matched))
    return versions


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Page of a list of a template's versions."""

    include_archived: bool = False
    after_id: UUID | None = None
    limit: int = 0
    offset: int = 0


async def list_versions(ctx: Context, subject: Subject, template_id: UUID, page: VersionPage) -> list[TemplateVersion]:
    """Return a template's versions, oldest first. Raises Invalid for an unknown `after_id`."""
    template = await load_template(ctx, subject, template_id)
    return await ctx.db.read(_list, template.id, page, ctx.clock.now(), ctx.config.provisioner_strict_tags)


async def _list(tx: Tx, template_id: UUID, page: VersionPage, now: datetime, strict: bool) -> list[TemplateVersion]:
    after = None
    if page.after_id is not None:
        after = await system_template_versions.get_version(tx, page.after_id)
        if after is None or after.template_id != template_id:
            raise Invalid(f'Record at "after_id" ("{page.after_id}") does not exists.')
    views = await store.list_views(
        tx,
        template_id,
        include_archived=page.include_archived,
        after=after,
        limit=page.limit,
        offset=page.offset,
    )
    return await _present_all(tx, views, now, strict)


async def get_version_by_name(ctx: Context, subject: Subject, template: TemplateRow, name: str) -> TemplateVersion:
    """Return a version by name. Raises NotFound with the name."""
    require(subject, "read", template_resource(template))
    view = await ctx.db.read(system_template_versions.get_view_by_name, template.id, name)
    if view is None:
        raise NotFound(f'No template version found by name "{name}".')
    return await show_version(ctx, view.version.id)


async def get_previous_version(
    ctx: Context, subject: Subject, template: TemplateRow, name: str
) -> TemplateVersion | None:
    """Return the version before the one with that name; None for the first version."""
    require(subject, "read", template_resource(template))
    view = await ctx.db.read(system_template_versions.get_view_by_name, template.id, name)
    if view is None:
        raise NotFound(f'No template version found by name "{name}".')
    previous = await ctx.db.read(system_template_versions.get_previous_view, view.version)
    return await show_version(ctx, previous.version.id) if previous is not None else None


async def find_template(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> TemplateRow:
    """Return a template by name. Raises NotFound."""
    row = await ctx.db.read(system_templates.get_template_by_name, organization_id, name)
    if row is None or not may(subject, "read", template_resource(row)):
        raise NotFound
    return row
