"""Queries on use: active users, times, applications and latencies; figures of the whole deployment.

Everything is counted from the statistics agents report every half minute, and from sessions in applications: a minute
counts once for a user and a template. Plain SQL, because the results are sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ARRAY, bindparam, text
from sqlalchemy.sql.elements import TextClause

from coder.coderd.store.engine.metadata import Timestamp, Uuid

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_SESSIONS = "(session_count_vscode + session_count_jetbrains + session_count_reconnecting_pty + session_count_ssh)"
_RANGE = "created_at >= :start AND created_at < :end AND (cardinality(:templates) = 0 OR template_id = ANY(:templates))"
APPS = ("vscode", "jetbrains", "reconnecting_pty", "ssh")
_NOBODY = "'00000000-0000-0000-0000-000000000000'"
"""Visitors of public applications: their use counts, but they are not users."""
_APP_RANGE = (
    "session_ended_at >= :start AND session_started_at < :end "
    "AND (cardinality(:templates) = 0 OR template_id = ANY(:templates))"
)
_APP_MINUTES = (
    "generate_series(date_trunc('minute', greatest(session_started_at, :start)), session_ended_at, interval '1 minute')"
)


def _ranged(sql: str) -> TextClause:
    return text(sql).bindparams(
        bindparam("start", type_=Timestamp),
        bindparam("end", type_=Timestamp),
        bindparam("templates", type_=ARRAY(Uuid)),
    )


_DAILY = text(
    f"""SELECT (at AT TIME ZONE 'UTC' + make_interval(hours => :offset))::date AS day, count(DISTINCT user_id) FROM (
        SELECT created_at AS at, user_id, template_id FROM workspace_agent_stats
        WHERE created_at >= :start AND (connection_count > 0 OR usage)
        UNION ALL
        SELECT session_ended_at, user_id, template_id FROM workspace_app_stats
        WHERE session_ended_at >= :start AND user_id <> {_NOBODY}
    ) seen WHERE CAST(:template AS uuid) IS NULL OR template_id = :template
    GROUP BY day"""  # noqa: S608 - constants of this file
).bindparams(bindparam("start", type_=Timestamp), bindparam("template", type_=Uuid))


async def daily_users(tx: Tx, start: datetime, offset_hours: int, template_id: UUID | None = None) -> dict[date, int]:
    """Return users per day, for days with any; the day begins `offset_hours` before UTC's."""
    rows = await tx.execute(_DAILY, {"start": start, "offset": offset_hours, "template": template_id})
    return {row[0]: row[1] for row in rows}


@dataclass(frozen=True, slots=True)
class Used:
    """Activity of one user. `value` is seconds of activity, or the median and 95 % latency in milliseconds."""

    user_id: UUID
    username: str
    avatar_url: str
    template_ids: list[UUID]
    seconds: int = 0
    p50: float = 0
    p95: float = 0


_ACTIVITY = _ranged(
    f"""SELECT u.id, u.username, u.avatar_url, s.template_ids, s.minutes * 60 FROM (
        SELECT user_id, array_agg(DISTINCT template_id) AS template_ids, count(DISTINCT minute) AS minutes FROM (
            SELECT user_id, template_id, date_trunc('minute', created_at) AS minute
            FROM workspace_agent_stats WHERE {_RANGE} AND {_SESSIONS} > 0
            UNION ALL
            SELECT user_id, template_id, minute FROM workspace_app_stats, {_APP_MINUTES} minute
            WHERE {_APP_RANGE} AND minute < :end
        ) used GROUP BY user_id
    ) s JOIN users u ON u.id = s.user_id ORDER BY u.id"""  # noqa: S608 - constants of this file
)


async def user_activity(tx: Tx, start: datetime, end: datetime, templates: Sequence[UUID]) -> list[Used]:
    """Return the seconds each user spent in sessions and applications."""
    rows = await tx.execute(_ACTIVITY, _window(start, end, templates))
    return [Used(row[0], row[1], row[2], sorted(row[3]), seconds=row[4]) for row in rows]


_LATENCY = _ranged(
    f"""SELECT u.id, u.username, u.avatar_url, s.template_ids, s.p50, s.p95 FROM (
        SELECT user_id, array_agg(DISTINCT template_id) AS template_ids,
            percentile_cont(0.5) WITHIN GROUP (ORDER BY connection_median_latency_ms) AS p50,
            percentile_cont(0.95) WITHIN GROUP (ORDER BY connection_median_latency_ms) AS p95
        FROM workspace_agent_stats WHERE {_RANGE} AND connection_median_latency_ms > 0 AND {_SESSIONS} > 0
        GROUP BY user_id
    ) s JOIN users u ON u.id = s.user_id ORDER BY u.id"""  # noqa: S608
)


async def user_latency(tx: Tx, start: datetime, end: datetime, templates: Sequence[UUID]) -> list[Used]:
    rows = await tx.execute(_LATENCY, _window(start, end, templates))
    return [Used(row[0], row[1], row[2], sorted(row[3]), p50=row[4], p95=row[5]) for row in rows]


_APPS = ", ".join(
    f"count(DISTINCT (user_id, date_trunc('minute', created_at))) FILTER (WHERE session_count_{app} > 0) * 60, "
    f"count(DISTINCT (user_id, date_bin('30 minutes', created_at, '2000-01-01')))"
    f" FILTER (WHERE session_count_{app} > 0), "
    f"array_agg(DISTINCT template_id) FILTER (WHERE session_count_{app} > 0)"
    for app in APPS
)
_USAGE = _ranged(
    f"SELECT {_APPS} FROM workspace_agent_stats WHERE {_RANGE} AND {_SESSIONS} > 0"  # noqa: S608
)
_ACTIVE = _ranged(
    f"""SELECT count(DISTINCT user_id) FILTER (WHERE user_id <> {_NOBODY}), array_agg(DISTINCT template_id) FROM (
        SELECT user_id, template_id FROM workspace_agent_stats WHERE {_RANGE} AND {_SESSIONS} > 0
        UNION SELECT user_id, template_id FROM workspace_app_stats WHERE {_APP_RANGE}
    ) used"""  # noqa: S608
)
_APP_USE = _ranged(
    f"""SELECT s.slug_or_port, a.display_name, a.icon, array_agg(DISTINCT s.template_id),
        count(DISTINCT (s.user_id, minute)) * 60,
        count(DISTINCT (s.user_id, date_bin('30 minutes', minute, '2000-01-01')))
    FROM workspace_app_stats s
    JOIN workspace_apps a ON a.agent_id = s.agent_id AND a.slug = s.slug_or_port, {_APP_MINUTES} minute
    WHERE {_APP_RANGE} AND minute < :end
    GROUP BY s.slug_or_port, a.display_name, a.icon ORDER BY s.slug_or_port, a.display_name"""  # noqa: S608
)


@dataclass(frozen=True, slots=True)
class AppUse:
    seconds: int
    times: int
    template_ids: list[UUID]


@dataclass(frozen=True, slots=True)
class Usage:
    """Use within an interval, all templates together."""

    active_users: int
    template_ids: list[UUID]
    apps: dict[str, AppUse]
    """Use by the names of `APPS`."""


async def usage(tx: Tx, start: datetime, end: datetime, templates: Sequence[UUID]) -> Usage:
    window = _window(start, end, templates)
    active, template_ids = (await tx.execute(_ACTIVE, window)).one()
    row = (await tx.execute(_USAGE, window)).one()
    apps = {
        app: AppUse(row[3 * number], row[3 * number + 1], sorted(row[3 * number + 2] or ()))
        for number, app in enumerate(APPS)
    }
    return Usage(active, sorted(template_ids or ()), apps)


_STEPS = text(
    f"""SELECT used.* FROM unnest(CAST(:starts AS timestamptz[]), CAST(:ends AS timestamptz[]))
        WITH ORDINALITY AS step (began, ended, number)
    CROSS JOIN LATERAL ({_ACTIVE.text.replace(":start", "step.began").replace(":end", "step.ended")}) used
    ORDER BY step.number"""  # noqa: S608
).bindparams(
    bindparam("starts", type_=ARRAY(Timestamp)),
    bindparam("ends", type_=ARRAY(Timestamp)),
    bindparam("templates", type_=ARRAY(Uuid)),
)


async def active_in_steps(
    tx: Tx, steps: Sequence[tuple[datetime, datetime]], templates: Sequence[UUID]
) -> list[tuple[int, list[UUID]]]:
    """Return, for each interval, the number of active users and the templates of their workspaces."""
    starts, ends = [start for start, _ in steps], [end for _, end in steps]
    rows = await tx.execute(_STEPS, {"starts": starts, "ends": ends, "templates": list(templates)})
    return [(active, sorted(template_ids or ())) for active, template_ids in rows]


@dataclass(frozen=True, slots=True)
class NamedAppUse:
    """Use of an application that templates define."""

    slug: str
    display_name: str
    icon: str
    template_ids: list[UUID]
    seconds: int
    times: int


async def app_usage(tx: Tx, start: datetime, end: datetime, templates: Sequence[UUID]) -> list[NamedAppUse]:
    """Return use by slug. Shared ports are left out."""
    rows = await tx.execute(_APP_USE, _window(start, end, templates))
    return [NamedAppUse(row[0], row[1], row[2], sorted(row[3]), row[4], row[5]) for row in rows]


_PARAMETERS = _ranged(
    """SELECT p.name, max(p.display_name), max(p.type), max(p.description), b.value, count(*),
        array_agg(DISTINCT t.template_id), min(p.options::text)
    FROM (SELECT id, workspace_id, template_version_id FROM workspace_builds
        WHERE created_at >= :start AND created_at < :end AND transition = 'start') w
    JOIN template_versions t ON t.id = w.template_version_id
    JOIN workspace_build_parameters b ON b.workspace_build_id = w.id
    JOIN template_version_parameters p ON p.template_version_id = t.id AND p.name = b.name
    WHERE cardinality(:templates) = 0 OR t.template_id = ANY(:templates)
    GROUP BY p.name, b.value ORDER BY p.name, b.value"""
)


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """Number of times a parameter had a value."""

    name: str
    display_name: str
    type: str
    description: str
    value: str
    count: int
    template_ids: list[UUID]
    options: str
    "JSON."


async def parameter_values(tx: Tx, start: datetime, end: datetime, templates: Sequence[UUID]) -> list[ParameterValue]:
    return [ParameterValue(*row) for row in await tx.execute(_PARAMETERS, _window(start, end, templates))]


def _window(start: datetime, end: datetime, templates: Sequence[UUID]) -> dict[str, datetime | list[UUID]]:
    return {"start": start, "end": end, "templates": list(templates)}


_STATUSES = text(
    """SELECT day, status, count(*) FROM unnest(CAST(:days AS timestamptz[])) AS day
    JOIN LATERAL (
        SELECT DISTINCT ON (user_id) user_id, status FROM user_status_changes
        WHERE changed_at <= day ORDER BY user_id, changed_at DESC, id DESC
    ) latest ON latest.status <> 'deleted'
    GROUP BY day, status"""
).bindparams(bindparam("days", type_=ARRAY(Timestamp)))
_KNOWN_STATUSES = text("SELECT DISTINCT status FROM user_status_changes WHERE status <> 'deleted' ORDER BY status")


async def status_counts(tx: Tx, days: Sequence[datetime]) -> dict[str, dict[datetime, int]]:
    """Return the number of users in each status at each of the moments; every status that ever occurred is a key."""
    results: dict[str, dict[datetime, int]] = {row[0]: {} for row in await tx.execute(_KNOWN_STATUSES)}
    for day, status, count in await tx.execute(_STATUSES, {"days": list(days)}):
        results[status][day] = count
    return results


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the deployment."""

    pending: int
    building: int
    running: int
    failed: int
    stopped: int
    p50: float
    "Milliseconds; -1 without connections, like the next."
    p95: float
    rx_bytes: int
    tx_bytes: int
    vscode: int
    ssh: int
    jetbrains: int
    reconnecting_pty: int


_BUILDS = text(
    """SELECT
        count(*) FILTER (WHERE j.started_at IS NULL AND j.completed_at IS NULL),
        count(*) FILTER (WHERE j.started_at IS NOT NULL AND j.completed_at IS NULL),
        count(*) FILTER (WHERE j.completed_at IS NOT NULL AND j.error = '' AND j.canceled_at IS NULL
            AND b.transition = 'start'),
        count(*) FILTER (WHERE j.completed_at IS NOT NULL AND j.error <> '' AND j.canceled_at IS NULL),
        count(*) FILTER (WHERE j.completed_at IS NOT NULL AND j.error = '' AND j.canceled_at IS NULL
            AND b.transition = 'stop')
    FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
    JOIN provisioner_jobs j ON j.id = b.job_id WHERE NOT w.deleted"""
)
_TRAFFIC = text(
    """SELECT
        coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY connection_median_latency_ms)
            FILTER (WHERE connection_median_latency_ms > 0), -1),
        coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY connection_median_latency_ms)
            FILTER (WHERE connection_median_latency_ms > 0), -1),
        coalesce(sum(rx_bytes), 0)::bigint, coalesce(sum(tx_bytes), 0)::bigint
    FROM workspace_agent_stats WHERE created_at >= :start"""
).bindparams(bindparam("start", type_=Timestamp))
_LATEST_SESSIONS = text(
    """SELECT coalesce(sum(session_count_vscode), 0)::bigint, coalesce(sum(session_count_ssh), 0)::bigint,
        coalesce(sum(session_count_jetbrains), 0)::bigint, coalesce(sum(session_count_reconnecting_pty), 0)::bigint
    FROM (SELECT DISTINCT ON (agent_id) * FROM workspace_agent_stats WHERE created_at >= :start AND NOT usage
        ORDER BY agent_id, created_at DESC) latest"""
).bindparams(bindparam("start", type_=Timestamp))


async def figures(tx: Tx, since: datetime) -> Figures:
    """Return the workspaces now, traffic and sessions since then."""
    builds = (await tx.execute(_BUILDS)).one()
    traffic = (await tx.execute(_TRAFFIC, {"start": since})).one()
    sessions = (await tx.execute(_LATEST_SESSIONS, {"start": since})).one()
    return Figures(*builds, *traffic, *sessions)
