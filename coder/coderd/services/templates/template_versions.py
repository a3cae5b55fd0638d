"""Template versions: reading what their import found, renaming, canceling, archiving.

A version without a template is seen by those who may make templates; one with a template by those who may read that.
Making one is `new_template_versions.py`; the import is a job (`services/templates/import_messages.py`); dry runs are
`dry_runs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.api.base.refusals import Failed, Invalid, NotFound, TooEarly
from coder.api.login.external_auth import TemplateVersionExternalAuth
from coder.api.templates.parameters import Preset, TemplateVersionParameter
from coder.api.templates.template_versions import (
    PatchTemplateVersionRequest,
    TemplateVersion,
    TemplateVersionVariable,
)
from coder.api.workspaces.builds import WorkspaceResource
from coder.coderd.services.access import owner_identity
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import load_template, lock_template, template_resource
from coder.coderd.services.agents.agent_view import TROUBLESHOOTING_URL, AgentViewContext
from coder.coderd.services.agents.resource_view import load_resources, present_resources
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.login import external_auth
from coder.coderd.services.login.required_logins import wanted_of
from coder.coderd.services.provisioning.jobs import cancel_job, load_places, match_provisioners
from coder.coderd.services.templates.loaded_versions import LoadedVersion, _load, load_version, lock_version
from coder.coderd.services.templates.new_template_versions import name_taken
from coder.coderd.services.templates.template_version_view import (
    present_parameter,
    present_preset,
    present_variable,
    present_version,
)
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import template_versions as store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.template_versions import VersionView
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.access.policy import Resource, Subject
from coder.domain.provisioning.queue import NO_PLACE

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NIL = UUID(int=0)


# ---- access


# ---- reading


async def get_version(ctx: Context, subject: Subject, version_id: UUID) -> TemplateVersion:
    loaded = await load_version(ctx, subject, version_id)
    return await _show(ctx, loaded.version.id)


async def _show(ctx: Context, version_id: UUID) -> TemplateVersion:
    shown = await ctx.db.read(_read_shown, version_id, ctx.clock.now(), ctx.config.provisioner_strict_tags)
    if not shown:
        raise NotFound
    return shown


async def _read_shown(tx: Tx, version_id: UUID, now: datetime, strict: bool) -> TemplateVersion | None:
    view = await store.get_view(tx, version_id)
    if view is None:
        return None
    shown = (await _present_all(tx, [view], now, strict))[0]
    if isinstance(shown.job.completed_at, datetime) and shown.job.completed_at > view.version.updated_at:
        # The import ended between the two statements: its version is one of before, which a client that waits for the
        # end must not be shown.
        view = await store.get_view(tx, version_id) or view
        shown = (await _present_all(tx, [view], now, strict))[0]
    return shown


async def _present_all(tx: Tx, views: Sequence[VersionView], now: datetime, strict: bool) -> list[TemplateVersion]:
    jobs = await job_store.get_jobs(tx, [view.version.job_id for view in views])
    places = await load_places(tx, list(jobs.values()), now, strict=strict)
    shown = []
    for view in views:
        job = jobs[view.version.job_id]
        waits = job.status == "pending"
        matched = await match_provisioners(tx, job, now, strict=strict) if waits else None
        shown.append(present_version(view, job, places.get(job.id, NO_PLACE), matched=matched))
    return shown


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Which versions of a template to list."""

    include_archived: bool = False
    after_id: UUID | None = None
    limit: int = 0
    offset: int = 0


async def list_versions(ctx: Context, subject: Subject, template_id: UUID, page: VersionPage) -> list[TemplateVersion]:
    """Oldest first. Raises Invalid for an unknown `after_id`."""
    template = await load_template(ctx, subject, template_id)
    return await ctx.db.read(_list, template.id, page, ctx.clock.now(), ctx.config.provisioner_strict_tags)


async def _list(tx: Tx, template_id: UUID, page: VersionPage, now: datetime, strict: bool) -> list[TemplateVersion]:
    after = None
    if page.after_id is not None:
        after = await store.get_version(tx, page.after_id)
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
    """Raises NotFound with the name in it."""
    require(subject, "read", template_resource(template))
    view = await ctx.db.read(store.get_view_by_name, template.id, name)
    if view is None:
        raise NotFound(f'No template version found by name "{name}".')
    return await _show(ctx, view.version.id)


async def get_previous_version(
    ctx: Context, subject: Subject, template: TemplateRow, name: str
) -> TemplateVersion | None:
    """The version before the one of that name; None for the first."""
    require(subject, "read", template_resource(template))
    view = await ctx.db.read(store.get_view_by_name, template.id, name)
    if view is None:
        raise NotFound(f'No template version found by name "{name}".')
    previous = await ctx.db.read(store.get_previous_view, view.version)
    return await _show(ctx, previous.version.id) if previous is not None else None


async def find_template(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> TemplateRow:
    """A template by its name. Raises NotFound."""
    row = await ctx.db.read(template_store.get_template_by_name, organization_id, name)
    if row is None or not may(subject, "read", template_resource(row)):
        raise NotFound
    return row


async def list_parameters(ctx: Context, subject: Subject, version_id: UUID) -> list[TemplateVersionParameter]:
    """Raises TooEarly while the import runs."""
    _check_imported(await load_version(ctx, subject, version_id))
    return [present_parameter(row) for row in await ctx.db.read(store.list_parameters, version_id)]


async def list_variables(ctx: Context, subject: Subject, version_id: UUID) -> list[TemplateVersionVariable]:
    """Values of sensitive ones are not shown. Raises TooEarly while the import runs."""
    _check_imported(await load_version(ctx, subject, version_id))
    return [present_variable(row) for row in await ctx.db.read(store.list_variables, version_id)]


def _check_imported(loaded: LoadedVersion) -> None:
    if loaded.job.completed_at is None:
        raise TooEarly("Template version job has not finished")


async def list_presets(ctx: Context, subject: Subject, version_id: UUID) -> list[Preset]:
    await load_version(ctx, subject, version_id)
    return [present_preset(row) for row in await ctx.db.read(store.list_presets, version_id)]


async def list_external_auth(
    ctx: Context, subject: Subject, version_id: UUID, user_id: UUID | None = None
) -> list[TemplateVersionExternalAuth]:
    """Providers the template wants its users to be linked to, and whether that user (None: the caller) is.

    Of others it is told to those who may create workspaces for them.
    """
    loaded = await load_version(ctx, subject, version_id)
    if user_id is not None and user_id != subject.user_id:
        theirs = Resource("workspace", owner_id=user_id, organization_id=loaded.version.organization_id)
        require(subject, "create", theirs)
        await ctx.db.read(owner_identity.require_member, subject, user_id, loaded.version.organization_id)
    return await external_auth.required_of(ctx, user_id or subject.user_id, wanted_of(loaded.version))


async def list_resources(ctx: Context, subject: Subject, version_id: UUID) -> list[WorkspaceResource]:
    """Raises Invalid while the import runs."""
    loaded = await load_version(ctx, subject, version_id)
    return await show_resources(ctx, loaded.job)


async def show_resources(ctx: Context, job: JobRow) -> list[WorkspaceResource]:
    """What a finished import or dry run found. Raises Invalid before its end."""
    if job.completed_at is None:
        raise Invalid("Job hasn't completed!")
    loaded = await ctx.db.read(load_resources, [job.id])
    url = ctx.config.agent_fallback_troubleshooting_url or TROUBLESHOOTING_URL
    return present_resources(loaded, job.id, AgentViewContext(now=ctx.clock.now(), troubleshooting_url=url))


# ---- changing


async def update_version(
    ctx: Context, subject: Subject, version_id: UUID, body: PatchTemplateVersionRequest
) -> TemplateVersion:
    """Renames it or changes its message. Raises InvalidFields, Conflict."""
    loaded = await load_version(ctx, subject, version_id, "update")
    check_request(body, {"name": loaded.version.name, "message": loaded.version.message})
    changes: dict[str, Any] = {"updated_at": ctx.clock.now()}
    if body.name:
        changes["name"] = body.name
    if isinstance(body.message, str):
        changes["message"] = body.message
    with told_as(name_taken(body.name)):
        await ctx.db.run(_write, subject, version_id, changes)
    return await _show(ctx, loaded.version.id)


async def _write(tx: Tx, subject: Subject, version_id: UUID, changes: dict[str, Any]) -> None:
    await lock_version(tx, subject, version_id)
    await store.update_version(tx, version_id, **changes)


async def cancel_import(ctx: Context, subject: Subject, version_id: UUID) -> None:
    """Raises Invalid when the import ended or was canceled before."""
    await load_version(ctx, subject, version_id, "update")
    await ctx.db.run(_cancel, subject, version_id, ctx.clock.now())


async def _cancel(tx: Tx, subject: Subject, version_id: UUID, now: datetime) -> None:
    await cancel_job(tx, (await lock_version(tx, subject, version_id)).job.id, now)


async def archive_version(ctx: Context, subject: Subject, version_id: UUID, *, archived: bool) -> None:
    """Raises Invalid when it is so already, Failed when it is in use."""
    loaded = await ctx.db.read(_load, version_id)
    if loaded is None or not may(subject, "update", loaded.resource):
        # Upstream tells readers who may not archive that there is nothing.
        raise NotFound("Template or template versions not found.")
    await ctx.db.run(_archive, subject, version_id, archived, ctx.clock.now())


async def _archive(tx: Tx, subject: Subject, version_id: UUID, archived: bool, now: datetime) -> None:
    await lock_version(tx, subject, version_id)
    version = await store.get_version(tx, version_id, lock=True)
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
    """Archives what nobody needs: failed versions, or all that are not in use."""
    template = await ctx.db.read(template_store.get_template, template_id)
    if template is None or template.deleted or not may(subject, "read", template_resource(template)):
        raise NotFound
    if not may(subject, "update", template_resource(template)):
        raise NotFound("Template or template versions not found.")
    return await ctx.db.run(_archive_unused, subject, template_id, not everything, ctx.clock.now())


async def _archive_unused(tx: Tx, subject: Subject, template_id: UUID, only_failed: bool, now: datetime) -> list[UUID]:
    await lock_template(tx, subject, template_id)
    return await store.archive_unused(tx, template_id, only_failed=only_failed, now=now)
