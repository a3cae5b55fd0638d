"""Queue of provisioner jobs: daemons wait here, and new jobs wake them. `new_jobs.enqueue_job` adds jobs.

Daemons with the same organization, types and tags form a group. A new daemon polls the database once. When there is no
job, only one daemon of the group polls from then on, and the others wait behind it. A new job wakes the first daemon of
each group that could run it (NOTIFY, plus a poll every 30 s in case a notice was lost). So a thousand idle daemons cost
one query per group.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.coderd.services.provisioning.jobs import notify_job_change
from coder.coderd.services.provisioning.new_jobs import POSTED
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import previews as preview_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.workspaces import system_builds
from coder.domain.provisioning.queue import MAX_PREVIEWS, PREVIEW_PRIORITY, DaemonOffer
from coder.domain.provisioning.tags import tags_match

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_log = get_logger("job_queue")

BACKUP_POLL = 30.0
"""Seconds between polls without a notice (upstream's value)."""

RequireRight = Callable[[], Awaitable[None]]
"""Raises when an admitted daemon may take jobs no longer."""


async def _allow() -> None:
    pass


_GroupKey = tuple[UUID, frozenset[str], tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class _Group:
    """Daemons that take the same jobs."""

    offer: DaemonOffer
    turn: trio.Lock = field(default_factory=trio.Lock)
    posted: trio.Event = field(default_factory=trio.Event)
    waiting: int = 0


class JobQueue:
    """The queue of a server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._groups: dict[_GroupKey, _Group] = {}
        self._listening = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for posted jobs, until cancelled."""
        nursery.start_soon(self._listen)

    async def acquire(self, worker_id: UUID, offer: DaemonOffer, require_right: RequireRight = _allow) -> JobRow:
        """Wait for a matching job and assign it to `worker_id`.

        `require_right` is called before each poll, and its exception ends the wait. Cancellation ends the wait as well,
        but never loses a job: once the database assigned a job, it is returned.
        """
        await self._listening.wait()
        key = (offer.organization_id, offer.provisioners, tuple(sorted(offer.tags.items())))
        # Each daemon polls once by itself: under load, no daemon waits for another one's query.
        with trio.CancelScope(shield=True):
            job = await self._take(worker_id, offer, require_right)
        if job is not None:
            return job
        group = self._groups.setdefault(key, _Group(offer))
        group.waiting += 1
        try:
            async with group.turn:
                while True:
                    posted = group.posted  # read before the poll, so that jobs posted during it are not missed
                    # Shielded, and no checkpoint until the return: a cancellation must not drop a locked job.
                    with trio.CancelScope(shield=True):
                        job = await self._take(worker_id, offer, require_right)
                    if job is not None:
                        return job
                    with trio.move_on_after(BACKUP_POLL):
                        await posted.wait()
        finally:
            group.waiting -= 1
            if not group.waiting and self._groups.get(key) is group:
                del self._groups[key]

    async def _take(self, worker_id: UUID, offer: DaemonOffer, require_right: RequireRight) -> JobRow | None:
        ctx = self._ctx
        await require_right()
        # A single statement is a transaction; notifying watchers must not delay the daemon.
        job = await ctx.db.read(take_job, offer, worker_id, ctx.clock.now(), ctx.config.provisioner_strict_tags)
        if job is not None and job.priority == PREVIEW_PRIORITY and not await self._hold_slot(job):
            return None
        if job is not None:
            ctx.nursery.start_soon(self._report_start, job)
        return job

    async def _hold_slot(self, job: JobRow) -> bool:
        return await self._ctx.db.run(hold_preview_slot, job.id, self._ctx.clock.now())

    async def _report_start(self, job: JobRow) -> None:
        try:
            reason, transition = await self._ctx.db.run(_notify_start, job)
            metrics = self._ctx.services.metrics
            metrics["coderd_provisioner_job_queue_wait_seconds"].observe(
                max(((job.started_at or job.created_at) - job.created_at).total_seconds(), 0),
                reason,
                job.type,
                job.provisioner,
                transition,
            )
        except Exception as error:
            # Watchers are notified of the job's end as well; they only miss the start.
            _log.warn("watchers could not be notified of a job's start", job=job.id, error=error)

    async def _listen(self) -> None:
        async with self._ctx.db.listen(POSTED) as notices:
            self._listening.set()
            async for _channel, payload in notices:
                self._wake(payload)

    def _wake(self, payload: str) -> None:
        notice, strict = _parse_notice(payload), self._ctx.config.provisioner_strict_tags
        for group in self._groups.values():
            if notice is None or _concerns(notice, group.offer, strict=strict):
                group.posted.set()
                group.posted = trio.Event()


async def _notify_start(tx: Tx, job: JobRow) -> tuple[str, str]:
    """Notify watchers of the job's start; return reason and transition of its build, empty without one."""
    await notify_job_change(tx, job)
    build = await system_builds.get_build_by_job(tx, job.id) if job.type == "workspace_build" else None
    return (build.reason, build.transition) if build else ("", "")


@dataclass(frozen=True, slots=True)
class _JobPosted:
    """A new job of an organization; without tags when they were too long for a notice."""

    organization_id: UUID
    provisioner: str
    tags: Mapping[str, str]


def _parse_notice(payload: str) -> _JobPosted | None:
    """Return a notice; None, which wakes all groups, when notices may be lost or this one is malformed."""
    if payload == RESYNC:
        return None
    try:
        notice = json.loads(payload)
        tags = {str(name): str(value) for name, value in dict(notice["tags"]).items()}
        return _JobPosted(UUID(notice["organization_id"]), str(notice["type"]), tags)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _concerns(notice: _JobPosted, offer: DaemonOffer, *, strict: bool) -> bool:
    """Return whether to poll the database, whose own form of the rule decides (`acquire_job`)."""
    return (
        notice.organization_id == offer.organization_id
        and notice.provisioner in offer.provisioners
        and (not notice.tags or tags_match(notice.tags, offer.tags, strict=strict))
    )


async def hold_preview_slot(tx: Tx, job_id: UUID, now: datetime) -> bool:
    """Keep an acquired preview if a slot is free; otherwise put it back and return False.

    Daemons that acquire at the same moment do not see each other's job. The end of a preview wakes them.
    """
    await preview_store.lock_slots(tx)
    job = await system_jobs.get_job(tx, job_id, lock=True)
    if job is None or await preview_store.count_running(tx) <= MAX_PREVIEWS:
        return job is not None
    # A preview that was canceled meanwhile has no daemon that could end it.
    completed_at = now if job.canceled_at is not None else None
    await job_store.update_job(tx, job_id, started_at=None, worker_id=None, completed_at=completed_at)
    return False


async def take_job(tx: Tx, offer: DaemonOffer, worker_id: UUID, now: datetime, strict: bool) -> JobRow | None:
    """Assign the next matching job to a daemon, if there is one, in one statement."""
    return await job_store.acquire_job(
        tx,
        organization_id=offer.organization_id,
        provisioners=sorted(offer.provisioners),
        tags=offer.tags,
        worker_id=worker_id,
        now=now,
        strict=strict,
    )
