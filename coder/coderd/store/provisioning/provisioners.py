"""Queries on provisioner daemons and provisioner keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import ColumnElement, Insert, Text, Update, delete, exists, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB, distinct_on, insert

from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.engine.rows import column_values
from coder.coderd.store.engine.sql_types import SqlColumn
from coder.coderd.store.provisioning.jobs import STATUS
from coder.coderd.store.tables.builds import workspace_builds
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.provisioners import provisioner_daemons, provisioner_keys
from coder.coderd.store.tables.templates import template_versions, templates

if TYPE_CHECKING:
    from coder.api.base.enums import ProvisionerType
    from coder.coderd.store.engine.database import Tx
    from coder.domain.provisioning.jobs import JobStatus

_daemons = provisioner_daemons
KEY_DELETED = "provisioner_key_deleted"
"""NOTIFY channel: the id of a deleted key, whose daemons must disconnect."""


@dataclass(frozen=True, slots=True)
class DaemonRow:
    """Provisioner daemon that is or was connected."""

    id: UUID
    organization_id: UUID
    key_id: UUID
    created_at: datetime
    last_seen_at: datetime | None
    name: str
    version: str
    api_version: str
    provisioners: list[ProvisionerType]
    tags: dict[str, str]
    user_id: UUID | None = None
    """User whose session it used, if any."""


@dataclass(frozen=True, slots=True)
class ProvisionerKeyRow:
    """Provisioner key; the secret itself is not stored."""

    id: UUID
    created_at: datetime
    organization_id: UUID
    name: str
    tags: dict[str, str]
    hashed_secret: bytes


@dataclass(frozen=True, slots=True)
class DaemonJob:
    """Job of a daemon, with its names."""

    worker_id: UUID
    id: UUID
    status: JobStatus
    template_name: str
    template_display_name: str
    template_icon: str


_DAEMON_COLUMNS = tuple(_daemons.c[field.name] for field in fields(DaemonRow))
KEY_COLUMNS = tuple(provisioner_keys.c[field.name] for field in fields(ProvisionerKeyRow))


def daemon_columns() -> tuple[SqlColumn, ...]:
    """Return the columns of a `DaemonRow`."""
    return _DAEMON_COLUMNS


async def upsert_daemon(tx: Tx, daemon: DaemonRow, link: UUID) -> DaemonRow | None:
    """Store a daemon that just connected; a daemon of the same name, owner, key and user keeps its id and creation
    time.

    None when the name belongs to another key or user: taking a name must not take its jobs.
    """
    values = {**column_values(daemon), "link_id": link}
    changed = {name: value for name, value in values.items() if name not in {"id", "created_at", "organization_id"}}
    # Two statements: ON CONFLICT would have to repeat the expressions of the index letter by letter.
    result = (
        await tx.execute(
            select(_daemons.c.id, _daemons.c.key_id, _daemons.c.user_id)
            .where(
                _daemons.c.organization_id == daemon.organization_id,
                func.lower(_daemons.c.name) == func.lower(daemon.name),
                func.coalesce(_daemons.c.tags["owner"].astext, "") == daemon.tags.get("owner", ""),
            )
            .with_for_update()
        )
    ).one_or_none()
    # A row without a user is older than that column: its daemon may have a job that must not be lost.
    if result is not None and (result.key_id, result.user_id or daemon.user_id) != (daemon.key_id, daemon.user_id):
        return None
    if result is None:
        query: Insert | Update = insert(_daemons).values(values)
    else:
        query = update(_daemons).where(_daemons.c.id == result.id).values(changed)
    row = (await tx.execute(query.returning(*_DAEMON_COLUMNS))).one()
    return DaemonRow(*row)


async def touch_daemon(tx: Tx, daemon_id: UUID, link: UUID, now: datetime) -> None:
    """Record that the daemon is connected by this link, unless a newer one is open."""
    values = {"last_seen_at": now, "link_id": func.coalesce(_daemons.c.link_id, link)}
    await tx.execute(update(_daemons).where(_daemons.c.id == daemon_id).values(values))


async def mark_daemon_disconnected(tx: Tx, daemon_id: UUID, link: UUID, last_seen_at: datetime) -> None:
    """Record that the daemon disconnected, unless it reconnected over a newer link. Clocks are not compared: those of
    two servers differ."""
    condition = (_daemons.c.id == daemon_id) & (_daemons.c.link_id == link)
    await tx.execute(update(_daemons).where(condition).values(last_seen_at=last_seen_at, link_id=None))


async def mark_daemon_draining(tx: Tx, daemon_id: UUID, link: UUID) -> None:
    """Record that a connected daemon takes no further jobs: it offers no provisioner until it connects again."""
    condition = (_daemons.c.id == daemon_id) & (_daemons.c.link_id == link)
    await tx.execute(update(_daemons).where(condition).values(provisioners=[]))


async def is_newest_link(tx: Tx, daemon_id: UUID, link: UUID) -> bool:
    """Return whether the daemon has not reconnected over another link since."""
    query = select(_daemons.c.id).where(_daemons.c.id == daemon_id, _daemons.c.link_id == link)
    return (await tx.execute(query.with_for_update(read=True))).first() is not None


def has_unfinished_job() -> ColumnElement[bool]:
    """Return the condition that a silent daemon may reconnect with a result: it is recognized by its id, which a new
    row would not have. Reaping ends a job without updates (`services/provisioning/reaping.py`)."""
    jobs = provisioner_jobs.c
    return exists().where(jobs.worker_id == _daemons.c.id, jobs.completed_at.is_(None))


async def forget_daemons(tx: Tx, unseen_since: datetime) -> int:
    """Delete daemons unseen since then, except those with a job; return their number."""
    condition = or_(
        _daemons.c.last_seen_at < unseen_since,
        (_daemons.c.last_seen_at.is_(None)) & (_daemons.c.created_at < unseen_since),
    )
    result = await tx.execute(delete(_daemons).where(condition, ~has_unfinished_job()).returning(_daemons.c.id))
    return len(result.all())


async def list_daemons(
    tx: Tx,
    organization_id: UUID,
    *,
    ids: Collection[UUID] = (),
    tags: Mapping[str, str] | None = None,
) -> list[DaemonRow]:
    """Return daemons, oldest first. `tags` keeps daemons that have all of them."""
    query = select(*_DAEMON_COLUMNS).where(_daemons.c.organization_id == organization_id)
    if ids:
        query = query.where(_daemons.c.id.in_(ids))
    if tags:
        query = query.where(_daemons.c.tags.contains(literal(dict(tags), JSONB)))
    # Daemons of one process connect within the same second: their names define their order.
    connected = func.date_trunc("second", _daemons.c.created_at)
    query = query.order_by(connected, func.lower(_daemons.c.name), _daemons.c.id)
    return [DaemonRow(*row) for row in await tx.execute(query)]


async def list_seen_daemons(tx: Tx, organization_ids: Collection[UUID], since: datetime) -> list[DaemonRow]:
    """Return daemons of some organizations that were connected after `since`."""
    query = select(*_DAEMON_COLUMNS).where(
        _daemons.c.organization_id.in_(organization_ids), _daemons.c.last_seen_at > since
    )
    return [DaemonRow(*row) for row in await tx.execute(query)]


async def get_daemon_names(tx: Tx, daemon_ids: Collection[UUID]) -> dict[UUID, str]:
    if not daemon_ids:
        return {}
    rows = await tx.execute(select(_daemons.c.id, _daemons.c.name).where(_daemons.c.id.in_(daemon_ids)))
    return {row.id: row.name for row in rows}


async def list_daemon_jobs(tx: Tx, daemon_ids: Collection[UUID]) -> list[DaemonJob]:
    """Return the running job and the last finished job of each daemon, if there are any."""
    if not daemon_ids:
        return []
    finished = provisioner_jobs.c.completed_at.is_not(None)
    latest = (
        select(provisioner_jobs.c.id)
        .where(provisioner_jobs.c.worker_id.in_(daemon_ids))
        .order_by(provisioner_jobs.c.worker_id, finished, provisioner_jobs.c.started_at.desc())
        .ext(distinct_on(provisioner_jobs.c.worker_id, finished))
    )
    version_text = provisioner_jobs.c.input["template_version_id"].astext
    query = (
        select(
            provisioner_jobs.c.worker_id,
            provisioner_jobs.c.id,
            STATUS,
            func.coalesce(templates.c.name, ""),
            func.coalesce(templates.c.display_name, ""),
            func.coalesce(templates.c.icon, ""),
        )
        .select_from(
            provisioner_jobs.outerjoin(workspace_builds, workspace_builds.c.job_id == provisioner_jobs.c.id)
            .outerjoin(
                template_versions,
                or_(
                    template_versions.c.id == workspace_builds.c.template_version_id,
                    workspace_builds.c.id.is_(None) & (template_versions.c.id.cast(Text) == version_text),
                ),
            )
            .outerjoin(templates, templates.c.id == template_versions.c.template_id)
        )
        .where(provisioner_jobs.c.id.in_(latest))
    )
    return [DaemonJob(*row) for row in await tx.execute(query)]


async def insert_key(tx: Tx, key: ProvisionerKeyRow) -> None:
    """Insert a key. Raises IntegrityError on `ix_provisioner_keys_organization_id_name` when the name is taken."""
    await tx.execute(insert(provisioner_keys).values(column_values(key)))


async def get_key_by_secret(tx: Tx, hashed_secret: bytes) -> ProvisionerKeyRow | None:
    row = (
        await tx.execute(select(*KEY_COLUMNS).where(provisioner_keys.c.hashed_secret == hashed_secret))
    ).one_or_none()
    return ProvisionerKeyRow(*row) if row else None


async def list_keys(tx: Tx, organization_id: UUID) -> list[ProvisionerKeyRow]:
    query = (
        select(*KEY_COLUMNS)
        .where(provisioner_keys.c.organization_id == organization_id)
        .order_by(provisioner_keys.c.created_at)
    )
    return [ProvisionerKeyRow(*row) for row in await tx.execute(query)]


async def get_key_names(tx: Tx, key_ids: Collection[UUID]) -> dict[UUID, str]:
    if not key_ids:
        return {}
    return {
        row.id: row.name
        for row in await tx.execute(
            select(provisioner_keys.c.id, provisioner_keys.c.name).where(provisioner_keys.c.id.in_(key_ids))
        )
    }


async def has_key(tx: Tx, key_id: UUID) -> bool:
    return (await tx.execute(select(provisioner_keys.c.id).where(provisioner_keys.c.id == key_id))).first() is not None


async def delete_key(tx: Tx, key_id: UUID) -> None:
    """Delete a key and notify its daemons."""
    await tx.execute(delete(provisioner_keys).where(provisioner_keys.c.id == key_id))
    await notify(tx, KEY_DELETED, str(key_id))
