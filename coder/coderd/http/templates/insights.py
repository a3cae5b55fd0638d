"""Use of the deployment: daily users, activity, latency, template usage, statuses; the deployment's figures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal, ParamSpec, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quart import Blueprint, Response, request

from coder.api.base.refusals import Invalid, NotFound
from coder.api.base.struct import ApiStruct
from coder.api.site.deployment import DeploymentStats
from coder.api.templates.build_report import TemplateBuildReport
from coder.api.templates.insights import (
    DAUsResponse,
    InsightsReportInterval,
    TemplateInsightsResponse,
    UserActivityInsightsResponse,
    UserLatencyInsightsResponse,
    UserStatusChangeCount,
)
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.templates import build_report, insights, usage_reports
from coder.coderd.services.templates.usage_reports import Window
from coder.domain.foundation.search import explain_time, parse_rfc3339

blueprint = Blueprint("insights", __name__, url_prefix="/api/v2")

P = ParamSpec("P")
T = TypeVar("T")
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_INTERVALS: tuple[InsightsReportInterval | Literal[""], ...] = ("", "day", "week")
_SECTIONS = ("interval_reports", "report")


def _counted(view: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Wrap a view that exists only where usage is collected."""

    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        if not context().config.stats_collection_usage_stats_enable:
            raise NotFound("Not Found.", "Template insights are disabled.")
        return await view(*args, **kwargs)

    guarded.__name__ = view.__name__
    return guarded


class _StatusCounts(ApiStruct):
    status_counts: dict[str, list[UserStatusChangeCount]]


@route(blueprint, "GET", "/deployment/stats", scope="deployment_stats:read", answers=DeploymentStats)
async def get_stats() -> Response:
    return reply(await insights.deployment_stats(context(), subject()))


@route(
    blueprint, "GET", "/insights/daus", scope="deployment_stats:read", query={"tz_offset": str}, answers=DAUsResponse
)
@_counted
async def get_daily_users() -> Response:
    """Return daily users of the whole deployment."""
    return reply(await insights.daily_users(context(), subject(), _offset()))


@route(
    blueprint,
    "GET",
    "/insights/user-activity",
    scope="template:view_insights",
    query={"end_time": str, "start_time": str, "template_ids": list[UUID]},
    wants=("end_time", "start_time"),
    answers=UserActivityInsightsResponse,
    compressed=True,
)
@_counted
async def get_user_activity() -> Response:
    return reply(await usage_reports.user_activity(context(), subject(), _window()))


@route(
    blueprint,
    "GET",
    "/insights/user-latency",
    scope="template:view_insights",
    query={"end_time": str, "start_time": str, "template_ids": list[UUID]},
    wants=("end_time", "start_time"),
    answers=UserLatencyInsightsResponse,
    compressed=True,
)
@_counted
async def get_user_latency() -> Response:
    return reply(await usage_reports.user_latency(context(), subject(), _window()))


@route(
    blueprint,
    "GET",
    "/insights/templates",
    scope="template:view_insights",
    query={"end_time": str, "interval": str, "sections": str, "start_time": str, "template_ids": list[UUID]},
    wants=("end_time", "start_time"),
    answers=TemplateInsightsResponse,
)
@_counted
async def get_template_usage() -> Response:
    """Return template usage. `interval` is day, week or empty; `sections` empty means both."""
    window = _window("interval", "sections")
    query = Query()
    interval, sections = query.one("interval"), [part for part in query.parts("sections") if part]
    query.check()
    if interval not in _INTERVALS:
        raise _wrong("interval", "must be one of [day week]")
    if interval == "week" and not usage_reports.ends_with_a_week(window):
        raise Invalid("Query parameter has invalid value.", "Last report interval should have at least 6 days.")
    if any(section not in _SECTIONS for section in sections):
        raise _wrong("sections", f"must be one of [{' '.join(_SECTIONS)}]")
    return reply(await usage_reports.template_usage(context(), subject(), window, interval, sections))


@route(
    blueprint,
    "GET",
    "/insights/user-status-counts",
    scope="user:read",
    query={"timezone": str, "tz_offset": str},
    answers=_StatusCounts,
)
async def get_status_counts() -> Response:
    """Return the number of users in each status at the beginning of each day."""
    return reply(_StatusCounts(status_counts=await insights.status_counts(context(), subject(), _zone())))


@route(
    blueprint,
    "GET",
    "/templates/<id:template>/build-report",
    scope="template:view_insights",
    answers=TemplateBuildReport,
    compressed=True,
)
async def get_build_report(template: str) -> Response:
    """Return results and times of the template's builds in the last 30 days. Ours, not upstream's."""
    return reply(await build_report.get_build_report(context(), subject(), path_uuid(template)))


def _offset(*others: str) -> int:
    query = Query()
    query.only("tz_offset", *others)
    return query.hours("tz_offset")


def _zone() -> tzinfo:
    name, offset = request.args.get("timezone", ""), _offset("timezone")
    if not name:
        return timezone(timedelta(hours=offset)) if offset else UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Invalid("Invalid timezone.", f"unknown time zone {name}") from error


def _window(*others: str) -> Window:
    """Return the query's interval; only its parameters and `others` are allowed."""
    query = Query()
    query.only("start_time", "end_time", "template_ids", *others)
    texts = {name: query.require(name) for name in ("start_time", "end_time")}
    template_ids = query.uuids("template_ids")
    query.check()
    start, end = (_time(name, text) for name, text in texts.items())
    if end < start:
        raise _wrong("end_time", 'Query param "end_time" must be after than "start_time"')
    return Window(start, end, template_ids)


def _time(name: str, text: str) -> datetime:
    """Parse a full day in its own zone; the end may be a full hour of today."""
    label = f'Query param "{name}"'
    if parse_rfc3339(text) is None:
        raise _wrong(name, f"{label} must be a valid date format ({_LAYOUT}): {explain_time(text, _LAYOUT)}")
    moment = datetime.fromisoformat(text)
    now = context().clock.now().astimezone(moment.tzinfo)
    if moment > now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1):
        raise _wrong(name, f"{label} must not be in the future")
    full_day = name == "start_time" or moment.date() != now.date()
    hour = 0 if full_day else moment.hour
    if (moment.hour, moment.minute, moment.second, moment.microsecond) != (hour, 0, 0, 0):
        raise _wrong(name, f"{label} must have the clock set to {hour:02}:00:00, got {text}")
    return moment


def _wrong(field: str, detail: str) -> Invalid:
    return Invalid("Query parameter has invalid value.", validations=[(field, detail)])
