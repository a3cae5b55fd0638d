"""Facts about the database for diagnostics: version, size, connected provisioners, waiting jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import func, select, text

from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.provisioners import provisioner_daemons
from coder.domain.provisioning.provisioners import STALE_AFTER

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """The server's version text, and the database's size in bytes."""

    version: str
    size: int


async def read_facts(tx: Tx) -> DatabaseFacts:
    statement = text("SELECT current_setting('server_version'), pg_database_size(current_database())")
    row = (await tx.execute(statement)).one()
    return DatabaseFacts(str(row[0]), int(row[1]))


async def count_provisioners(tx: Tx, now: datetime) -> tuple[int, int]:
    """Return the numbers of connected daemons and of jobs that wait for one."""
    daemons = select(func.count()).where(provisioner_daemons.c.last_seen_at > now - STALE_AFTER)
    jobs = select(func.count()).where(
        provisioner_jobs.c.started_at.is_(None),
        provisioner_jobs.c.completed_at.is_(None),
        provisioner_jobs.c.canceled_at.is_(None),
    )
    return (await tx.execute(daemons)).scalar_one(), (await tx.execute(jobs)).scalar_one()
