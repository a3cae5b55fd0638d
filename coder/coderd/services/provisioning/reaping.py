"""Reaping: failing hung and abandoned jobs, and deleting daemons that were not seen for a week.

A running job without a report for 5 minutes is hung (daemons send a heartbeat every 5 s). A job that no daemon took for
30 minutes has no chance left. Both fail with an explanation in the job and at the end of its log. Several replicas may
reap concurrently: rows that another transaction has locked are skipped.

Silence counts only while reports could arrive. After a start, an outage of the database, a stop of this process or a
step of the database's clock, `Attention` first gives daemons the time to repeat their reports. What passed before is no
silence either: a daemon that is cut off for a minute must not pay for an outage, or for an hour that the clock was set.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.foundation.isolated_items import process_items
from coder.coderd.services.provisioning.job_endings import end_with_error
from coder.coderd.services.provisioning.job_handlers import AfterCommit, JobHandlers
from coder.coderd.services.provisioning.job_logs import append_logs
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.domain.provisioning.jobs import (
    HUNG_AFTER,
    PENDING_AFTER,
    REAPED_PER_RUN,
    JobLogLine,
    reap_error,
    reap_kind,
    reap_log_outputs,
)
from coder.domain.provisioning.provisioners import FORGET_AFTER

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


LISTENING = 30.0
"""Seconds for daemons to repeat a report that could not be taken: their pauses between two attempts are up to 10 s."""
_MOST_GAPS = 100
_LATE = 15.0
"""Seconds by which a look may be late on a busy machine."""


_BEFORE_START = timedelta(days=1)
"""Time before the first look in which reports may have got lost: no server may have run."""


class Attention:
    """Whether this server could hear daemons for long enough to judge their silence, and how much of it does not count.

    Judged by the clock that jobs' times are from: it also shows how long this process was stopped, or its machine
    asleep, and by how much the database's clock was set.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._due: datetime | None = None
        "Time of the next look, as planned at the last one."
        self._heard_at: datetime | None = None
        "Time of the last look; None before the first one at which silence counted."
        self._gaps: list[tuple[datetime, timedelta]] = []
        "Ends and lengths of the times in which reports may have got lost, the newest last."

    def look(self) -> bool:
        """Return whether silence counts now; call `expect` before the next look."""
        now, due, self._due = self._ctx.clock.now(), self._due, None
        is_on_time = due is not None and abs((now - due).total_seconds()) <= _LATE
        if is_on_time and self._ctx.db.availability.reliable_for() > LISTENING:
            self._heard_at = now
            return True
        if self._heard_at is None:
            self._gaps = [(now, _BEFORE_START)]
        else:
            self._gaps = [*self._gaps, (now, max(now - self._heard_at, timedelta()))][-_MOST_GAPS:]
            self._heard_at = now
        return False

    def expect(self, rest: float) -> None:
        """Plan the next look in `rest` seconds."""
        self._due = self._ctx.clock.now() + timedelta(seconds=rest)

    def excused(self) -> timedelta:
        """Return how much of the last silence does not count."""
        total, since = timedelta(), self._ctx.clock.now() - HUNG_AFTER
        for end, length in reversed(self._gaps):
            if end > since - total:
                total += length
        return total


async def reap(ctx: Context, excused: timedelta = timedelta()) -> list[JobRow]:
    """Reap once; return the jobs that were failed. `excused` is the part of a silence that does not count."""
    now, handlers = ctx.clock.now(), ctx.services.api.job_handlers
    await ctx.db.run(daemon_store.forget_daemons, now - FORGET_AFTER)
    silent = await ctx.db.read(job_store.list_silent_jobs, now - HUNG_AFTER - excused, now - PENDING_AFTER - excused)

    async def fail(job_id: UUID) -> JobRow | None:
        reaped = await ctx.db.run(_reap, handlers, job_id, now, excused)
        if reaped is None:
            return None
        job, follow_up = reaped
        follow_up()
        return job

    return await process_items(
        ctx.log,
        "a silent job could not be failed",
        silent,
        fail,
        lambda job_id: {"job": job_id},
        most=REAPED_PER_RUN,
    )


async def _reap(
    tx: Tx, handlers: JobHandlers, job_id: UUID, now: datetime, excused: timedelta
) -> tuple[JobRow, AfterCommit] | None:
    """Fail a silent job; None when another transaction has locked it, or its daemon reported meanwhile."""
    since, pending_since = now - HUNG_AFTER - excused, now - PENDING_AFTER - excused
    job = await job_store.lock_silent_job(tx, job_id, since, pending_since)
    if job is None:
        return None
    kind = reap_kind(started_at=job.started_at, completed_at=job.completed_at, updated_at=job.updated_at, now=now)
    if kind is None:
        return None
    outputs = reap_log_outputs(kind)
    await append_logs(tx, job, [JobLogLine(now, "provisioner_daemon", "error", "", output) for output in outputs])
    await end_with_error(tx, job, reap_error(kind), "", now)
    await handlers.of(job).fail(tx, job, None, now)
    # The same follows as for a build whose daemon reported its end.
    return job, await handlers.of(job).ended(tx, job.id)
