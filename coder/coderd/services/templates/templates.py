"""Templates: making, listing, changing and deleting them, and who may use them.

When workspaces of a template start, stop, sleep and go is read and applied by `template_schedules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Conflict, Forbidden, Invalid, InvalidFields, NotFound
from coder.api.templates.insights import DAUsResponse
from coder.api.templates.templates import (
    CreateTemplateRequest,
    Template,
    TemplateAutostartRequirement,
    TemplateAutostopRequirement,
    UpdateTemplateMeta,
)
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import load_template, lock_template, template_resource
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.notifications.notifications import site_of
from coder.coderd.services.people.organizations import hold_organization
from coder.coderd.services.templates.insights import count_daily_users
from coder.coderd.services.templates.template_figures import Counts, TemplateFigures
from coder.coderd.services.templates.template_schedules import read_schedule, write_changes
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as store
from coder.coderd.store.templates.templates import BuildTime, TemplateRow, TemplateView
from coder.coderd.store.templates.templates import TemplateSearch as TemplateSearch
from coder.domain.access.policy import Resource, Subject
from coder.domain.foundation.share_levels import SHARE_LEVELS

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
CORS_BEHAVIORS = ("simple", "passthru")
_EDITABLE = (
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
)
_TAKEN = "ix_templates_organization_id_name_living"


def days_of(mask: int) -> list[str]:
    """Names of the days in a bit mask, Monday first."""
    return [day for number, day in enumerate(DAYS) if mask & (1 << number)]


# ---- reading


async def get_template(ctx: Context, subject: Subject, template_id: UUID) -> Template:
    row = await load_template(ctx, subject, template_id)
    return await show_template(ctx, row.id)


async def get_template_by_name(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> Template:
    """Whatever the case of the name. Raises NotFound."""
    row = await ctx.db.read(store.get_template_by_name, organization_id, name)
    if row is None or not may(subject, "read", template_resource(row)):
        raise NotFound
    return await show_template(ctx, row.id)


async def list_templates(ctx: Context, subject: Subject, which: TemplateSearch) -> list[Template]:
    """By name; only those the caller may read."""
    views = await ctx.db.read(store.list_views, which)
    figures = await ctx.part(TemplateFigures).get()
    return [present_template(view, figures) for view in views if may(subject, "read", template_resource(view.template))]


async def show_template(ctx: Context, template_id: UUID) -> Template:
    """The template as JSON, without asking who wants it. Raises NotFound."""
    view = await ctx.db.read(store.get_view, template_id)
    if view is None:
        raise NotFound
    return present_template(view, await ctx.part(TemplateFigures).get())


async def get_daily_users(ctx: Context, subject: Subject, template_id: UUID, offset_hours: int = 0) -> DAUsResponse:
    """People who used workspaces of the template, per day."""
    await load_template(ctx, subject, template_id)
    return await count_daily_users(ctx, offset_hours, template_id)


# ---- making


async def create_template(
    ctx: Context, subject: Subject, organization_id: UUID, body: CreateTemplateRequest
) -> Template:
    """Makes a template of a version that belongs to none. Raises InvalidFields, NotFound, Conflict, Forbidden."""
    require(subject, "create", Resource("template", organization_id=organization_id))
    _check_numbers("Invalid create template request.", body)
    schedule = read_schedule(body, "Invalid create template request.")
    row = replace(_new_row(organization_id, subject.user_id, body, ctx.clock.now()), **schedule)
    with told_as({_TAKEN: _taken(row.name)}):
        await ctx.db.run(_create, row)
    return await show_template(ctx, row.id)


async def _create(tx: Tx, row: TemplateRow) -> None:
    await hold_organization(tx, row.organization_id)
    version = await version_store.get_version(tx, row.active_version_id, lock=True)
    if version is None or version.organization_id != row.organization_id:
        text = f'Template version "{row.active_version_id}" does not exist.'
        raise _VersionMissingError(text)
    if version.template_id is not None:
        text = f"Template version {version.id} is already part of a template"
        raise InvalidFields(("template_version_id", "Template version is already part of a template"), message=text)
    if await store.get_template_by_name(tx, row.organization_id, row.name) is not None:
        raise _taken(row.name)
    job = await job_store.get_job(tx, version.job_id)
    await store.insert_template(tx, replace(row, provisioner=job.provisioner if job else row.provisioner))
    await version_store.update_version(tx, version.id, template_id=row.id, updated_at=row.created_at)


class _VersionMissingError(NotFound):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.validations = (("template_version_id", "Template version does not exist"),)


def _new_row(organization_id: UUID, user_id: UUID, body: CreateTemplateRequest, now: datetime) -> TemplateRow:
    everyone = {} if body.disable_everyone_group_access else {str(organization_id): "use"}
    return TemplateRow(
        id=new_uuid(),
        organization_id=organization_id,
        name=body.name,
        display_name=_given(body.display_name, ""),
        description=_given(body.description, ""),
        icon=_given(body.icon, ""),
        provisioner="terraform",
        active_version_id=body.template_version_id,
        created_by=user_id,
        created_at=now,
        updated_at=now,
        deleted=False,
        deprecated="",
        default_ttl_ms=_given(body.default_ttl_ms, 0),
        activity_bump_ms=_given(body.activity_bump_ms, 3_600_000),
        time_til_autostop_notify_ms=_given(body.time_til_autostop_notify_ms, 0),
        autostop_days=0,
        autostop_weeks=1,
        autostart_days=127,
        allow_user_cancel_workspace_jobs=bool(body.allow_user_cancel_workspace_jobs),
        allow_user_autostart=True,
        allow_user_autostop=True,
        failure_ttl_ms=0,
        time_til_dormant_ms=0,
        time_til_dormant_autodelete_ms=0,
        require_active_version=False,
        max_port_share_level=body.max_port_share_level or "public",
        cors_behavior=body.cors_behavior or "simple",
        use_classic_parameter_flow=_given(body.template_use_classic_parameter_flow, False),
        disable_module_cache=False,
        agents_allowed=_given(body.agents_allowed, True),
        user_acl={},
        group_acl=everyone,
    )


# ---- changing


async def update_template(ctx: Context, subject: Subject, template_id: UUID, body: UpdateTemplateMeta) -> Template:
    """Changes what the body names. Raises InvalidFields, Conflict, Forbidden, NotFound."""
    row = await load_template(ctx, subject, template_id)
    check_request(body, {"name": row.name, "display_name": row.display_name})
    _check_numbers("Invalid request to update template metadata!", body, row)
    require(subject, "update", template_resource(row))
    now, quiet_hours = ctx.clock.now(), ctx.config.default_quiet_hours_schedule

    async def write(tx: Tx) -> None:
        present = await lock_template(tx, subject, template_id)
        changes = {**_changes(body, present), "updated_at": now}
        await write_changes(tx, present, changes, body, now, quiet_hours, site_of(ctx))

    with told_as({_TAKEN: _taken(str(_given(body.name, row.name)))}):
        await ctx.db.run(write)
    return await show_template(ctx, row.id)


def _changes(body: UpdateTemplateMeta, present: TemplateRow) -> dict[str, Any]:
    """Columns to set. Raises InvalidFields."""
    changes = read_schedule(body, "Invalid request to update template metadata!", present)
    for name in _EDITABLE:
        if (value := _given(getattr(body, name), None)) is not None:
            changes[name] = value
    shut = _given(body.disable_everyone_group_access, None)
    if shut is not None:
        everyone = str(present.organization_id)
        others = {key: role for key, role in present.group_acl.items() if key != everyone}
        changes["group_acl"] = others if shut else {**others, everyone: "use"}
    return changes


async def delete_template(ctx: Context, subject: Subject, template_id: UUID) -> None:
    """Marks it deleted. Raises Invalid while workspaces use it."""
    await load_template(ctx, subject, template_id, "delete")
    await ctx.db.run(_delete, subject, template_id, ctx.clock.now())


async def _delete(tx: Tx, subject: Subject, template_id: UUID, now: datetime) -> None:
    await lock_template(tx, subject, template_id, "delete")
    if await store.count_living_workspaces(tx, template_id):
        raise Invalid("All workspaces must be deleted before a template can be removed.")
    await store.update_template(tx, template_id, deleted=True, updated_at=now)


async def set_active_version(ctx: Context, subject: Subject, template_id: UUID, version_id: UUID) -> None:
    """Promotes a version. Raises Invalid, Forbidden (failed import), NotFound."""
    await load_template(ctx, subject, template_id, "update")
    await ctx.db.run(_set_active, subject, template_id, version_id, ctx.clock.now())


async def _set_active(tx: Tx, subject: Subject, template_id: UUID, version_id: UUID, now: datetime) -> None:
    row = await lock_template(tx, subject, template_id)
    version = await version_store.get_version(tx, version_id)
    if version is None or version.organization_id != row.organization_id:
        raise NotFound("Template version not found.")
    if version.template_id != row.id:
        raise Invalid("The provided template version doesn't belong to the specified template.")
    if version.archived:
        raise Invalid("The provided template version is archived.")
    job = await job_store.get_job(tx, version.job_id)
    if job is None or job.status != "succeeded":
        detail = f"Attempted to promote a version with a {job.status if job else 'missing'} build"
        raise Forbidden("Only versions that have been built successfully can be promoted.", detail)
    await store.update_template(tx, row.id, active_version_id=version_id, updated_at=now)


# ---- checks


def _check_numbers(
    message: str, body: CreateTemplateRequest | UpdateTemplateMeta, present: TemplateRow | None = None
) -> None:
    """What has a message of its own; a value that is there already passes."""

    def changed(name: str) -> Any:
        value = _given(getattr(body, name), None)
        return None if present is not None and value == getattr(present, name) else value

    faults: list[tuple[str, str]] = []
    for name in ("default_ttl_ms", "activity_bump_ms", "time_til_autostop_notify_ms"):
        if (changed(name) or 0) < 0:
            faults.append((name, "Must be a positive integer."))
    level = changed("max_port_share_level")
    if level and level not in SHARE_LEVELS:
        faults.append(("max_port_share_level", f"Must be one of [{' '.join(SHARE_LEVELS)}]"))
    cors = changed("cors_behavior")
    if cors and cors not in CORS_BEHAVIORS:
        faults.append(("cors_behavior", f'Invalid CORS behavior "{cors}". Must be one of [simple, passthru]'))
    if faults:
        raise InvalidFields(*faults, message=message)


def _given(value: Any, default: Any) -> Any:
    return default if value is UNSET or value is None else value


def _taken(name: str) -> Conflict:
    return Conflict(
        f'Template with name "{name}" already exists.',
        validations=[("name", "This value is already in use and should be unique.")],
    )


# ---- JSON


def present_template(view: TemplateView, figures: Counts) -> Template:
    row = view.template
    # Most fields have the same name on both sides; the others follow.
    copied = {name: getattr(row, name) for name in _COPIED}
    return Template(
        **copied,
        organization_name=view.organization_name,
        organization_display_name=view.organization_display_name,
        organization_icon=view.organization_icon,
        active_user_count=figures.owners.get(row.id, 0),
        build_time_stats=_present_times(figures.times.get(row.id, ())),
        deprecated=bool(row.deprecated),
        deprecation_message=row.deprecated,
        autostop_requirement=TemplateAutostopRequirement(
            days_of_week=days_of(row.autostop_days), weeks=row.autostop_weeks
        ),
        autostart_requirement=TemplateAutostartRequirement(days_of_week=days_of(row.autostart_days)),
        created_by_id=row.created_by,
        created_by_name=view.created_by_name,
    )


_COPIED = {field.name for field in fields(TemplateRow)} & set(Template.__struct_fields__) - {"deprecated"}


def _present_times(times: Sequence[BuildTime]) -> Mapping[str, Any]:
    stats: dict[str, dict[str, int | None]] = {
        transition: {"P50": None, "P95": None} for transition in ("delete", "start", "stop")
    }
    for time in times:
        stats[time.transition] = {"P50": int(time.median * 1000), "P95": int(time.p95 * 1000)}
    return stats
