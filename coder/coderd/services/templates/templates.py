"""Templates, as users read and list them.

Creation is `new_templates.py`, changes are `template_changes.py`. Schedules of a template's workspaces are
`template_schedules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.api.templates.insights import DAUsResponse
from coder.api.templates.templates import (
    Template,
    TemplateAutostartRequirement,
    TemplateAutostopRequirement,
)
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import load_template, template_resource
from coder.coderd.services.templates.insights import count_daily_users
from coder.coderd.services.templates.template_figures import Counts
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates import templates as store
from coder.coderd.store.templates.templates import BuildTime, TemplateRow, TemplateView
from coder.coderd.store.templates.templates import TemplateSearch as TemplateSearch
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def days_of(mask: int) -> list[str]:
    """Return the names of the days in a bit mask, Monday first."""
    return [day for number, day in enumerate(DAYS) if mask & (1 << number)]


async def get_template(ctx: Context, subject: Subject, template_id: UUID) -> Template:
    row = await load_template(ctx, subject, template_id)
    return await show_template(ctx, row.id)


async def get_template_by_name(ctx: Context, subject: Subject, organization_id: UUID, name: str) -> Template:
    """Return a template by name, ignoring case. Raises NotFound."""
    row = await ctx.db.read(system_templates.get_template_by_name, organization_id, name)
    if row is None or not may(subject, "read", template_resource(row)):
        raise NotFound
    return await show_template(ctx, row.id)


async def list_templates(ctx: Context, subject: Subject, which: TemplateSearch) -> list[Template]:
    """Return the templates that the caller may read, sorted by name."""
    views = await ctx.db.read(store.list_views, which)
    figures = await ctx.services.api.template_figures.get()
    return [present_template(view, figures) for view in views if may(subject, "read", template_resource(view.template))]


async def show_template(ctx: Context, template_id: UUID) -> Template:
    """Return a template as JSON, without a check of permissions. Raises NotFound."""
    view = await ctx.db.read(system_templates.get_view, template_id)
    if view is None:
        raise NotFound
    return present_template(view, await ctx.services.api.template_figures.get())


async def get_daily_users(ctx: Context, subject: Subject, template_id: UUID, offset_hours: int = 0) -> DAUsResponse:
    """Return the number of users of the template's workspaces per day. Raises NotFound, also without
    `view_insights`."""
    row = await load_template(ctx, subject, template_id)
    if not may(subject, "view_insights", template_resource(row)):
        raise NotFound
    return await count_daily_users(ctx, offset_hours, template_id)


def present_template(view: TemplateView, figures: Counts) -> Template:
    row = view.template
    # Most fields have the same name in the row and in JSON; the others follow.
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


def _present_times(times: Sequence[BuildTime]) -> Mapping[str, Mapping[str, int | None]]:
    stats: dict[str, dict[str, int | None]] = {
        transition: {"P50": None, "P95": None} for transition in ("delete", "start", "stop")
    }
    for time in times:
        stats[time.transition] = {"P50": int(time.median * 1000), "P95": int(time.p95 * 1000)}
    return stats
