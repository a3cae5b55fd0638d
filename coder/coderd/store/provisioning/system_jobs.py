"""Reads of jobs without a subject, for loaders that check permission and for the server itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from coder.coderd.store.provisioning.jobs import JOB_COLUMNS, JobRow
from coder.coderd.store.tables.jobs import provisioner_jobs

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def get_job(tx: Tx, job_id: UUID, *, lock: bool = False) -> JobRow | None:
    """Return a job. `lock` keeps others from changing it until the transaction ends."""
    query = select(*JOB_COLUMNS).where(provisioner_jobs.c.id == job_id)
    if lock:
        query = query.with_for_update()
    row = (await tx.execute(query)).one_or_none()
    return JobRow(*row) if row else None


async def get_jobs(tx: Tx, job_ids: Collection[UUID]) -> dict[UUID, JobRow]:
    """Return the existing jobs by id."""
    if not job_ids:
        return {}
    rows = await tx.execute(select(*JOB_COLUMNS).where(provisioner_jobs.c.id.in_(job_ids)))
    return {row.id: JobRow(*row) for row in rows}
