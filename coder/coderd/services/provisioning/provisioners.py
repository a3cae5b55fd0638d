"""Lists of provisioner daemons. Their admission is `daemon_admission.py`, their calls are `daemon_calls.py`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import InvalidFields
from coder.api.provisioning.provisioners import ProvisionerDaemon, ProvisionerDaemonJob
from coder.coderd.services.provisioning.job_lists import lists_daemon, require_queue
from coder.coderd.store.provisioning import provisioners as store
from coder.coderd.store.provisioning.provisioners import DaemonJob, DaemonRow
from coder.domain.access.policy import Subject
from coder.domain.provisioning.provisioners import RESERVED_KEYS, daemon_status, is_stale
from coder.domain.provisioning.tags import find_tag_fault

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

MAX_DAEMON_NAME = 64
_LIST_LIMIT = 50
NO_TIME = datetime(1, 1, 1, tzinfo=UTC)


def check_tags(tags: Mapping[str, str]) -> None:
    """Check tags. Raises InvalidFields when the database cannot store them."""
    fault = find_tag_fault(tags.items())
    if fault is not None:
        raise InvalidFields(
            ("tags", f"tag {fault[0]!r}: {fault[1]}"), message="Given tags are not acceptable to the service"
        )


@dataclass(frozen=True, slots=True)
class DaemonFilter:
    """Filter of a list of daemons. Offline daemons are omitted without `offline`, `statuses` or `max_age`."""

    limit: int = _LIST_LIMIT
    ids: Collection[UUID] = ()
    tags: Mapping[str, str] | None = None
    offline: bool = False
    statuses: Collection[str] = ()
    max_age: timedelta | None = None


async def list_daemons(
    ctx: Context, subject: Subject, organization_id: UUID, which: DaemonFilter
) -> list[ProvisionerDaemon]:
    """Return daemons, oldest first. Raises NotFound without permission."""
    require_queue(subject, organization_id)
    now = ctx.clock.now()
    loaded = await ctx.db.read(load_daemons, organization_id, which, now)
    daemons = [daemon for daemon in loaded if lists_daemon(subject, daemon.id)]
    return daemons[: which.limit] if which.limit else daemons


async def load_daemons(tx: Tx, organization_id: UUID, which: DaemonFilter, now: datetime) -> list[ProvisionerDaemon]:
    rows = await store.list_daemons(tx, organization_id, ids=which.ids, tags=which.tags)
    if which.max_age is not None:
        rows = [row for row in rows if row.last_seen_at is not None and now - row.last_seen_at <= which.max_age]
    daemons = await _present_daemons(tx, rows, now)
    if which.statuses:
        return [daemon for daemon in daemons if daemon.status in which.statuses]
    if which.offline or which.max_age is not None:
        return daemons
    return [daemon for daemon in daemons if daemon.status != "offline"]


async def _present_daemons(tx: Tx, rows: Sequence[DaemonRow], now: datetime) -> list[ProvisionerDaemon]:
    jobs = await store.list_daemon_jobs(tx, [row.id for row in rows])
    keys: dict[UUID, str] = RESERVED_KEYS | await store.get_key_names(
        tx, {row.key_id for row in rows} - RESERVED_KEYS.keys()
    )
    return [_present_daemon(row, keys.get(row.key_id), jobs, now) for row in rows]


def _present_daemon(
    row: DaemonRow, key_name: str | None, jobs: Sequence[DaemonJob], now: datetime
) -> ProvisionerDaemon:
    own_jobs = [job for job in jobs if job.worker_id == row.id]
    # An offline daemon has no current job, even if the job is unfinished.
    online = not is_stale(row.last_seen_at, now)
    current = [job for job in own_jobs if online and job.status in {"running", "canceling"}]
    previous = [job for job in own_jobs if job.status in {"succeeded", "failed", "canceled"}]
    return ProvisionerDaemon(
        id=row.id,
        organization_id=row.organization_id,
        key_id=str(row.key_id),
        created_at=row.created_at,
        last_seen_at=row.last_seen_at or UNSET,
        name=row.name,
        version=row.version,
        api_version=row.api_version,
        provisioners=row.provisioners,
        tags=row.tags,
        key_name=key_name,
        status=daemon_status(row.last_seen_at, busy=bool(current), now=now),
        current_job=_present_daemon_job(current[0]) if current else None,
        previous_job=_present_daemon_job(previous[0]) if previous else None,
    )


def _present_daemon_job(job: DaemonJob) -> ProvisionerDaemonJob:
    return ProvisionerDaemonJob(
        id=job.id,
        status=job.status,
        template_name=job.template_name,
        template_icon=job.template_icon,
        template_display_name=job.template_display_name,
    )
