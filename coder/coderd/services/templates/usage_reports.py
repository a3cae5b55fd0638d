"""Reports of a window of time: activity and latency of users, and usage of templates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import NotFound
from coder.api.templates.insights import (
    ConnectionLatency,
    InsightsReportInterval,
    TemplateInsightsIntervalReport,
    TemplateInsightsReport,
    TemplateInsightsResponse,
    UserActivity,
    UserActivityInsightsReport,
    UserActivityInsightsResponse,
    UserLatency,
    UserLatencyInsightsReport,
    UserLatencyInsightsResponse,
)
from coder.api.templates.parameters import TemplateParameterUsage, TemplateParameterValue
from coder.api.templates.templates import TemplateAppUsage
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import template_resource
from coder.coderd.store.templates import insights as store
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates.insights import Usage
from coder.domain.access.policy import Class, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_BUILTIN = (
    ("vscode", "vscode", "Visual Studio Code", "/icon/code.svg"),
    ("jetbrains", "jetbrains", "JetBrains", "/icon/intellij.svg"),
    ("reconnecting_pty", "reconnecting-pty", "Web Terminal", "/icon/terminal.svg"),
    ("ssh", "ssh", "SSH", "/icon/terminal.svg"),
    ("sftp", "sftp", "SFTP", "/icon/terminal.svg"),
)


@dataclass(frozen=True, slots=True)
class Window:
    """Period and templates of a report."""

    start: datetime
    end: datetime
    template_ids: Sequence[UUID] = ()


def ends_with_a_week(window: Window) -> bool:
    """Return whether the last week is complete; six days suffice, because a clock change shortens a week."""
    rest = (window.end - window.start) % timedelta(days=7)
    return not rest or rest >= timedelta(days=6)


async def _require_insights(ctx: Context, subject: Subject, window: Window) -> None:
    """Require permission for the insights of each requested template, or of all. Raises NotFound.

    Unknown and deleted ids are no error for users who may view the insights of all templates, as recorded.
    """
    templates = await ctx.db.read(system_templates.get_templates, window.template_ids)
    active = [templates[key] for key in window.template_ids if key in templates and not templates[key].deleted]
    resources = [template_resource(template) for template in active]
    if len(active) < len(window.template_ids) or not active:
        resources.append(Class("template"))
    if not all(may(subject, "view_insights", resource) for resource in resources):
        raise NotFound


async def user_activity(ctx: Context, subject: Subject, window: Window) -> UserActivityInsightsResponse:
    """Return the activity of users. Raises NotFound."""
    await _require_insights(ctx, subject, window)
    rows = await ctx.db.read(store.user_activity, window.start, window.end, window.template_ids)
    users = [
        UserActivity(
            template_ids=row.template_ids,
            user_id=row.user_id,
            username=row.username,
            avatar_url=row.avatar_url,
            seconds=row.seconds,
        )
        for row in rows
    ]
    report = UserActivityInsightsReport(
        start_time=window.start, end_time=window.end, template_ids=_all(row.template_ids for row in rows), users=users
    )
    return UserActivityInsightsResponse(report=report)


async def user_latency(ctx: Context, subject: Subject, window: Window) -> UserLatencyInsightsResponse:
    """Return the latency of users. Raises NotFound."""
    await _require_insights(ctx, subject, window)
    rows = await ctx.db.read(store.user_latency, window.start, window.end, window.template_ids)
    users = [
        UserLatency(
            template_ids=row.template_ids,
            user_id=row.user_id,
            username=row.username,
            avatar_url=row.avatar_url,
            latency_ms=ConnectionLatency(p50=row.p50, p95=row.p95),
        )
        for row in rows
    ]
    report = UserLatencyInsightsReport(
        start_time=window.start, end_time=window.end, template_ids=_all(row.template_ids for row in rows), users=users
    )
    return UserLatencyInsightsResponse(report=report)


def _all(lists: Iterable[Sequence[UUID]]) -> list[UUID]:
    return sorted({template_id for ids in lists for template_id in ids})


async def template_usage(
    ctx: Context,
    subject: Subject,
    window: Window,
    interval: InsightsReportInterval | Literal[""],
    sections: Sequence[str],
) -> TemplateInsightsResponse:
    """Return the usage of templates. Raises NotFound.

    `interval` is day, week or empty; empty `sections` mean both.
    """
    await _require_insights(ctx, subject, window)
    answer = TemplateInsightsResponse()
    if not sections or "report" in sections:
        used = await ctx.db.read(store.usage, window.start, window.end, window.template_ids)
        answer.report = TemplateInsightsReport(
            start_time=window.start,
            end_time=window.end,
            template_ids=used.template_ids,
            active_users=used.active_users,
            apps_usage=_apps(used) + await _named_apps(ctx, window),
            parameters_usage=await _parameters(ctx, window),
        )
    if interval and (not sections or "interval_reports" in sections):
        steps = _steps(window, timedelta(days=7 if interval == "week" else 1))
        usage_by_step = await ctx.db.read(store.active_in_steps, steps, window.template_ids)
        answer.interval_reports = [
            TemplateInsightsIntervalReport(
                start_time=start,
                end_time=end,
                template_ids=template_ids,
                interval=interval,
                active_users=active,
            )
            for (start, end), (active, template_ids) in zip(steps, usage_by_step, strict=True)
        ]
    return answer


def _steps(window: Window, step: timedelta) -> list[tuple[datetime, datetime]]:
    """Split a window into steps; the last step may be shorter."""
    steps, start = [], window.start
    while start < window.end:
        end = min(start + step, window.end)
        steps.append((start, end))
        start = end
    return steps


def _apps(used: Usage) -> list[TemplateAppUsage]:
    none = store.AppUse(0, 0, [])
    return [
        TemplateAppUsage(
            template_ids=(app := used.apps.get(name, none)).template_ids,
            type="builtin",
            display_name=display_name,
            slug=slug,
            icon=icon,
            seconds=app.seconds,
            times_used=app.times,
        )
        for name, slug, display_name, icon in _BUILTIN
    ]


async def _named_apps(ctx: Context, window: Window) -> list[TemplateAppUsage]:
    rows = await ctx.db.read(store.app_usage, window.start, window.end, window.template_ids)
    return [
        TemplateAppUsage(
            template_ids=row.template_ids,
            type="app",
            display_name=row.display_name,
            slug=row.slug,
            icon=row.icon,
            seconds=row.seconds,
            times_used=row.times,
        )
        for row in rows
    ]


async def _parameters(ctx: Context, window: Window) -> list[TemplateParameterUsage]:
    rows = await ctx.db.read(store.parameter_values, window.start, window.end, window.template_ids)
    usages = []
    for _, group in groupby(rows, key=lambda row: row.name):
        values = list(group)
        first = values[0]
        usages.append(
            TemplateParameterUsage(
                template_ids=_all(row.template_ids for row in values),
                display_name=first.display_name,
                name=first.name,
                type=first.type,
                description=first.description,
                values=[TemplateParameterValue(value=row.value, count=row.count) for row in values],
                options=json.loads(first.options) or UNSET,
            )
        )
    return usages
