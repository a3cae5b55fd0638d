"""Logs of provisioner jobs: stored as daemons send them, read, and followed until the job ends.

A follower gets every stored line first, then new lines as they come. Its stream ends when the job is complete and all
lines are sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.provisioning.jobs import ProvisionerJobLog
from coder.coderd.services.access.token_masking import mask_build_tokens
from coder.coderd.services.provisioning.jobs import JOB_CHANGES
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow, LogRow
from coder.domain.provisioning.jobs import JobLogLine, cap_logs

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_BACKUP_POLL = 10.0
"Seconds between polls. Only a lost database connection loses notices, and sends RESYNC; polling is a second guard."
_PAGE = 1000


class JobChanges:
    """Distributes notices about jobs to their watchers."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._watchers: dict[UUID, set[JobWatch]] = {}
        self._listening = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for changes of jobs, until cancelled."""
        nursery.start_soon(self._listen)

    async def wait_ready(self) -> None:
        """Wait until listening; later notices are not missed."""
        await self._listening.wait()

    @contextmanager
    def watch(self, job_id: UUID) -> Iterator[JobWatch]:
        """Watch every change to the job for the duration of the block."""
        watch = JobWatch()
        self._watchers.setdefault(job_id, set()).add(watch)
        try:
            yield watch
        finally:
            watchers = self._watchers[job_id]
            watchers.discard(watch)
            if not watchers:
                del self._watchers[job_id]

    async def _listen(self) -> None:
        async with self._ctx.db.listen(JOB_CHANGES) as notices:
            self._listening.set()
            async for _channel, payload in notices:
                if payload == RESYNC:
                    for watchers in self._watchers.values():
                        _wake(watchers)
                else:
                    _wake(self._watchers.get(_parse_id(payload), ()))


def _parse_id(payload: str) -> UUID:
    try:
        return UUID(payload)
    except ValueError:
        return UUID(int=0)  # a foreign notice on this channel, which has no watcher


class JobWatch:
    """A watcher of a job. A change is remembered until the next `wait`."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, timeout: float) -> None:
        """Wait for a change since the last wait, at most `timeout` seconds."""
        with trio.move_on_after(timeout):
            await self._event.wait()
        self._event = trio.Event()


def _wake(watchers: set[JobWatch] | tuple[()]) -> None:
    for watch in watchers:
        watch.wake()


async def append_logs(tx: Tx, job: JobRow, lines: Iterable[JobLogLine]) -> None:
    """Store lines of a locked job, up to the job's limit; followers are notified when `tx` commits.

    The daemon masks secrets of the job; daemons of other implementations may not.
    """
    lines = list(lines)
    masked = await mask_build_tokens(tx, [line.output for line in lines])
    lines = [replace(line, output=output) for line, output in zip(lines, masked, strict=True)]
    capped = cap_logs(lines, job.logs_length, overflowed=job.logs_overflowed)
    if not capped.lines:
        return
    await job_store.insert_logs(tx, job.id, capped.lines)
    await job_store.update_job(tx, job.id, logs_length=capped.length, logs_overflowed=capped.overflowed)
    await notify(tx, JOB_CHANGES, str(job.id))


async def read_logs(ctx: Context, job_id: UUID, after: int = 0) -> list[LogRow]:
    return await ctx.db.read(job_store.list_logs, job_id, after=after)


async def follow_logs(ctx: Context, job_id: UUID, after: int = 0) -> AsyncGenerator[list[LogRow], None]:
    """Yield batches of lines with ids above `after`, until the job is complete and all lines are read."""
    changes = ctx.services.api.job_changes
    await changes.wait_ready()
    with changes.watch(job_id) as watch:
        while True:
            rows, complete = await ctx.db.read(_read_batch, job_id, after)
            if rows:
                after = rows[-1].id
                yield rows
            if complete and len(rows) < _PAGE:
                return
            if len(rows) < _PAGE:
                await watch.wait(_BACKUP_POLL)


async def _read_batch(tx: Tx, job_id: UUID, after: int) -> tuple[list[LogRow], bool]:
    # The job is read first: once it is complete, the lines read afterwards are all lines.
    job = await system_jobs.get_job(tx, job_id)
    rows = await job_store.list_logs(tx, job_id, after=after, limit=_PAGE)
    return rows, job is None or job.completed_at is not None


def present_log(row: LogRow) -> ProvisionerJobLog:
    return ProvisionerJobLog(
        id=row.id,
        created_at=row.created_at,
        log_source=row.source,
        log_level=row.level,
        stage=row.stage,
        output=row.output,
    )


def format_log(row: LogRow) -> str:
    """Return a line for `format=text`."""
    at = row.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{at} [{row.level}] [{row.source}|{row.stage}] {row.output}\n"
