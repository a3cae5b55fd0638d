"""Queries on previews of updates: dry runs of the lowest priority, of which a few run at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import func, select, text

from coder.coderd.store.tables.jobs import provisioner_job_logs, provisioner_jobs
from coder.domain.provisioning.queue import PREVIEW_PRIORITY

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_LOCK = text("SELECT pg_advisory_xact_lock(7312)")  # distinct from the other numbered locks
_jobs = provisioner_jobs.c


async def lock_slots(tx: Tx) -> None:
    """Serialize the assignment of previews until the transaction ends."""
    await tx.execute(_LOCK)


async def count_running(tx: Tx) -> int:
    """Return the number of previews that daemons work on."""
    query = select(func.count()).select_from(provisioner_jobs)
    query = query.where(_jobs.completed_at.is_(None), _jobs.started_at.is_not(None), _jobs.priority == PREVIEW_PRIORITY)
    return int((await tx.execute(query)).scalar_one())


async def list_waiting(tx: Tx) -> list[tuple[UUID, str, Mapping[str, str]]]:
    """Return (organization, provisioner, tags) of the pending previews, each once."""
    query = select(_jobs.organization_id, _jobs.provisioner, _jobs.tags).distinct()
    query = query.where(
        _jobs.completed_at.is_(None),
        _jobs.started_at.is_(None),
        _jobs.canceled_at.is_(None),
        _jobs.priority == PREVIEW_PRIORITY,
    )
    return [(row[0], row[1], row[2]) for row in await tx.execute(query)]


async def list_first_errors(tx: Tx, job_id: UUID, limit: int) -> list[str]:
    """Return the first lines of a job's log that are errors."""
    logs = provisioner_job_logs.c
    query = select(logs.output).where(logs.job_id == job_id, logs.level == "error", logs.output != "")
    return list((await tx.execute(query.order_by(logs.id).limit(limit))).scalars())
