"""Queries behind metrics: current numbers. Each returns pairs of label values and a number."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, text

from coder.coderd.store.engine.metadata import Timestamp
from coder.coderd.store.engine.sql_types import SqlRow

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

Series = list[tuple[tuple[str, ...], float]]

_USERS = text("SELECT status, count(*) FROM users WHERE NOT deleted AND NOT is_system GROUP BY status")
_ACTIVE = text("SELECT count(*) FROM users WHERE NOT deleted AND NOT is_system AND last_seen_at >= :since").bindparams(
    bindparam("since", type_=Timestamp)
)
_STATUS = """CASE WHEN j.error <> '' THEN 'failed'
    WHEN j.completed_at IS NOT NULL AND j.canceled_at IS NOT NULL THEN 'canceled'
    WHEN j.completed_at IS NOT NULL THEN 'succeeded'
    WHEN j.canceled_at IS NOT NULL THEN 'canceling'
    WHEN j.started_at IS NULL THEN 'pending' ELSE 'running' END"""
_LATEST = text(
    f"""SELECT {_STATUS}, t.name, v.name, u.username, b.transition, count(*)
    FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
    JOIN provisioner_jobs j ON j.id = b.job_id JOIN templates t ON t.id = w.template_id
    JOIN template_versions v ON v.id = b.template_version_id JOIN users u ON u.id = w.owner_id
    WHERE NOT w.deleted GROUP BY 1, 2, 3, 4, 5"""  # noqa: S608 - constants of this file
)
_AGENTS = text(
    """SELECT a.id, a.name, u.username, w.name, t.name, v.name, a.lifecycle_state, a.first_connected_at,
        a.last_connected_at, a.disconnected_at, a.created_at, a.connection_timeout_seconds
    FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
    JOIN workspace_agents a ON a.job_id = b.job_id JOIN users u ON u.id = w.owner_id
    JOIN templates t ON t.id = w.template_id JOIN template_versions v ON v.id = b.template_version_id
    WHERE NOT w.deleted AND NOT a.deleted"""
)
_APPS = text(
    """SELECT a.name, p.slug, p.health, u.username, w.name, count(*)
    FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
    JOIN workspace_agents a ON a.job_id = b.job_id JOIN workspace_apps p ON p.agent_id = a.id
    JOIN users u ON u.id = w.owner_id WHERE NOT w.deleted AND NOT a.deleted GROUP BY 1, 2, 3, 4, 5"""
)
_STATS = text(
    """SELECT a.name, u.username, w.name, sum(s.connection_count)::float, max(s.connection_median_latency_ms) / 1000,
        sum(s.rx_bytes)::float, sum(s.tx_bytes)::float, sum(s.session_count_jetbrains)::float,
        sum(s.session_count_reconnecting_pty)::float, sum(s.session_count_ssh)::float,
        sum(s.session_count_vscode)::float
    FROM workspace_agent_stats s JOIN workspace_agents a ON a.id = s.agent_id
    JOIN workspaces w ON w.id = s.workspace_id JOIN users u ON u.id = s.user_id
    WHERE s.created_at >= :since AND NOT s.usage GROUP BY 1, 2, 3"""
).bindparams(bindparam("since", type_=Timestamp))
_DAEMONS = text("SELECT count(*) FROM provisioner_daemons WHERE last_seen_at > :since").bindparams(
    bindparam("since", type_=Timestamp)
)
_JOBS = text(
    "SELECT provisioner, count(*) FROM provisioner_jobs WHERE started_at IS NOT NULL AND completed_at IS NULL "
    "GROUP BY provisioner"
)


async def users_by_status(tx: Tx) -> Series:
    return _series(await tx.execute(_USERS))


async def count_active(tx: Tx, since: datetime) -> int:
    """Return the number of users seen since then."""
    return int((await tx.execute(_ACTIVE, {"since": since})).scalar_one())


async def latest_builds(tx: Tx) -> Series:
    """Return builds by job status, template, version, owner, transition."""
    return _series(await tx.execute(_LATEST))


async def list_agents(tx: Tx) -> list[SqlRow]:
    """Return rows of current agents with related names and their connection times."""
    return list(await tx.execute(_AGENTS))


async def apps(tx: Tx) -> Series:
    """Return apps by agent, app, health, owner, workspace."""
    return _series(await tx.execute(_APPS))


async def agent_stats(tx: Tx, since: datetime) -> list[SqlRow]:
    """Return agent, owner, workspace, then eight sums of the reports since then."""
    return list(await tx.execute(_STATS, {"since": since}))


async def count_daemons(tx: Tx, since: datetime) -> int:
    return int((await tx.execute(_DAEMONS, {"since": since})).scalar_one())


async def running_jobs(tx: Tx) -> Series:
    return _series(await tx.execute(_JOBS))


def _series(rows: Iterable[SqlRow]) -> Series:
    return [(tuple(str(part) for part in row[:-1]), float(row[-1])) for row in rows]
