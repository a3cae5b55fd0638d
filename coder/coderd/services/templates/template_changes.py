"""Changes of templates: settings, deletion, and the active version."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, get_args
from uuid import UUID

from coder.api.base.refusals import Forbidden, Invalid, NotFound
from coder.api.templates.templates import Template, TemplateRole, UpdateTemplateMeta
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import load_template, lock_template, template_resource
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.notifications.notifications import site_of
from coder.coderd.services.templates.rollout_endings import end_void_rollout
from coder.coderd.services.templates.template_checks import NAME_INDEX, check_settings, name_taken, value_or
from coder.coderd.services.templates.template_schedules import read_schedule, write_changes
from coder.coderd.services.templates.templates import show_template
from coder.coderd.services.templates.versions.loaded_versions import find_version
from coder.coderd.store.templates import templates as store
from coder.coderd.store.templates.templates import TemplateChanges, TemplateRow
from coder.coderd.store.workspaces.change_feed import notify_changes
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_Editable = Literal[
    "name",
    "display_name",
    "description",
    "icon",
    "default_ttl_ms",
    "activity_bump_ms",
    "time_til_autostop_notify_ms",
    "allow_user_cancel_workspace_jobs",
    "cors_behavior",
    "max_port_share_level",
    "use_classic_parameter_flow",
    "disable_module_cache",
    "agents_allowed",
]
_EDITABLE: tuple[_Editable, ...] = get_args(_Editable)
_EMPTY_KEEPS = frozenset({"name", "cors_behavior"})
"""Settings that an empty text leaves as they are, as in the original."""
_SHOWN_IN_WORKSPACES = frozenset(
    {"name", "display_name", "icon", "allow_user_cancel_workspace_jobs", "use_classic_parameter_flow"}
)
"""Settings that are part of each workspace's JSON: watchers of workspaces learn of changes."""


async def update_template(ctx: Context, subject: Subject, template_id: UUID, body: UpdateTemplateMeta) -> Template:
    """Change the settings in the body. Raises InvalidFields, Conflict, Forbidden, NotFound."""
    row = await load_template(ctx, subject, template_id)
    check_request(body, {"name": row.name, "display_name": row.display_name})
    check_settings("Invalid request to update template metadata!", body, row)
    require(subject, "update", template_resource(row))
    now, quiet_hours = ctx.clock.now(), ctx.config.default_quiet_hours_schedule

    async def write(tx: Tx) -> None:
        present = await lock_template(tx, subject, template_id)
        changes = _changes(body, present)
        changes["updated_at"] = now
        await write_changes(tx, present, changes, body, now, quiet_hours, site_of(ctx))
        if any(name in _SHOWN_IN_WORKSPACES and value != getattr(present, name) for name, value in changes.items()):
            await notify_changes(tx, "settings", await store.list_workspace_places(tx, template_id))

    with constraint_refusals({NAME_INDEX: name_taken(str(value_or(body.name, row.name)))}):
        await ctx.db.run(write)
    return await show_template(ctx, row.id)


def _changes(body: UpdateTemplateMeta, present: TemplateRow) -> TemplateChanges:
    """Return the columns to set. Raises InvalidFields."""
    changes = read_schedule(body, "Invalid request to update template metadata!", present)
    for name in _EDITABLE:
        value = value_or(getattr(body, name), None)
        if value is not None and (value or name not in _EMPTY_KEEPS):
            changes[name] = value
    is_restricted = value_or(body.disable_everyone_group_access, None)
    if is_restricted is not None:
        everyone = str(present.organization_id)
        others: dict[str, TemplateRole] = {key: role for key, role in present.group_acl.items() if key != everyone}
        changes["group_acl"] = others if is_restricted else {**others, everyone: "use"}
    return changes


async def delete_template(ctx: Context, subject: Subject, template_id: UUID) -> None:
    """Mark a template deleted. Raises Invalid while it has workspaces."""
    await load_template(ctx, subject, template_id, "delete")
    await ctx.db.run(_delete, subject, template_id, ctx.clock.now())


async def _delete(tx: Tx, subject: Subject, template_id: UUID, now: datetime) -> None:
    row = await lock_template(tx, subject, template_id, "delete")
    if await store.count_living_workspaces(tx, template_id):
        raise Invalid("All workspaces must be deleted before a template can be removed.")
    await store.update_template(tx, template_id, deleted=True, updated_at=now)
    await end_void_rollout(tx, replace(row, deleted=True), now)


async def set_active_version(ctx: Context, subject: Subject, template_id: UUID, version_id: UUID) -> None:
    """Promote a version to be the active one. Raises Invalid, Forbidden (failed import), NotFound."""
    row = await load_template(ctx, subject, template_id)
    await ctx.db.read(check_promotion, subject, row, version_id)
    require(subject, "update", template_resource(row))
    await ctx.db.run(_set_active, subject, template_id, version_id, ctx.clock.now())


async def _set_active(tx: Tx, subject: Subject, template_id: UUID, version_id: UUID, now: datetime) -> None:
    row = await lock_template(tx, subject, template_id)
    await check_promotion(tx, subject, row, version_id)
    await promote(tx, row, version_id, now)
    await end_void_rollout(tx, replace(row, active_version_id=version_id), now)


async def promote(tx: Tx, row: TemplateRow, version_id: UUID, now: datetime) -> None:
    """Make a version the active one. The transaction has locked the template and checked the version."""
    await store.update_template(tx, row.id, active_version_id=version_id, updated_at=now)
    await notify_changes(tx, "settings", await store.list_workspace_places(tx, row.id))  # now outdated, or not any more


async def check_promotion(tx: Tx, subject: Subject, row: TemplateRow, version_id: UUID) -> None:
    """Require a version that can be the template's active one; readers hear this before their missing permission."""
    loaded = await find_version(tx, version_id)
    if loaded is None or not may(subject, "read", loaded.resource):
        raise NotFound("Template version not found.")
    version, job = loaded.version, loaded.job
    if version.organization_id != row.organization_id:
        raise NotFound("Template version not found.")
    if version.template_id != row.id:
        raise Invalid("The provided template version doesn't belong to the specified template.")
    if version.archived:
        raise Invalid("The provided template version is archived.")
    if job.status != "succeeded":
        detail = f"Attempted to promote a version with a {job.status} build"
        raise Forbidden("Only versions that have been built successfully can be promoted.", detail)
