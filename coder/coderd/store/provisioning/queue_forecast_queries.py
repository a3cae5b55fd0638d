"""Queries for the reasons why a job is pending and its forecast: all daemons, their jobs, recent durations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import extract, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from coder.coderd.store.provisioning.jobs import STATUS
from coder.coderd.store.provisioning.provisioners import DaemonRow, daemon_columns
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.provisioners import provisioner_daemons, provisioner_keys

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_jobs = provisioner_jobs

PARKED = "wait_for_provisioner"
"""Key in a job's input: it may wait for its daemon without limit."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """Running job of a daemon."""

    job_id: UUID
    worker_id: UUID
    type: str
    started_at: datetime


async def list_all_daemons(tx: Tx) -> list[DaemonRow]:
    """Return the daemons of every organization."""
    rows = await tx.execute(select(*daemon_columns()).order_by(provisioner_daemons.c.created_at))
    return [DaemonRow(*row) for row in rows]


async def list_key_ids(tx: Tx) -> set[UUID]:
    """Return the id of every provisioner key."""
    return set((await tx.execute(select(provisioner_keys.c.id))).scalars())


async def list_running(tx: Tx) -> list[RunningJob]:
    """Return unfinished jobs with a daemon, the oldest first."""
    query = (
        select(_jobs.c.id, _jobs.c.worker_id, _jobs.c.type, _jobs.c.started_at)
        .where(_jobs.c.completed_at.is_(None), _jobs.c.started_at.is_not(None), _jobs.c.worker_id.is_not(None))
        .order_by(_jobs.c.started_at)
    )
    return [RunningJob(*row) for row in await tx.execute(query)]


async def list_waiting_types(tx: Tx, job_ids: Collection[UUID]) -> dict[UUID, str]:
    rows = await tx.execute(select(_jobs.c.id, _jobs.c.type).where(_jobs.c.id.in_(job_ids)))
    return {row.id: row.type for row in rows}


async def list_durations(tx: Tx, organization_id: UUID, since: datetime, limit: int) -> list[tuple[str, float]]:
    """Return (type, seconds) of jobs that finished regularly, the newest first."""
    took = extract("epoch", _jobs.c.completed_at - _jobs.c.started_at)
    query = (
        select(_jobs.c.type, took)
        .where(
            _jobs.c.organization_id == organization_id,
            _jobs.c.completed_at >= since,
            _jobs.c.started_at.is_not(None),
            _jobs.c.worker_id.is_not(None),
            STATUS.in_(("succeeded", "failed")),
        )
        .order_by(_jobs.c.completed_at.desc())
        .limit(limit)
    )
    return [(row[0], max(0.0, float(row[1]))) for row in await tx.execute(query)]


async def set_parked(tx: Tx, job_id: UUID, *, parked: bool) -> None:
    """Set whether the job may wait without limit."""
    value = _jobs.c.input.op("||")(literal({PARKED: parked}, JSONB))
    await tx.execute(update(_jobs).where(_jobs.c.id == job_id).values(input=value))
