"""Putting work into the queue: the job's row and the notice that wakes daemons, in the caller's transaction.

A version or a build and its job appear together, and nobody is woken for what is rolled back. Who gets the job is
`job_queue.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.base.ids import new_uuid
from coder.coderd.services.foundation.object_limits import within_limit
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.domain.provisioning.jobs import JobType
from coder.domain.provisioning.tags import Tags

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

POSTED = "provisioner_job_posted"
"""NOTIFY channel of new work: `{"organization_id", "type", "tags"}` as upstream's."""

_MAX_NOTICE = 7000
"""Bytes; Postgres refuses a NOTIFY payload of 8000 or more. A longer one goes without its tags and wakes more."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to be done by a daemon."""

    organization_id: UUID
    initiator_id: UUID
    provisioner: str
    file_id: UUID
    type: JobType
    input: Mapping[str, Any]
    tags: Tags
    "Made whole by `normalize_tags` (coder/domain/provisioning/tags.py)."
    priority: int = 0
    id: UUID = field(default_factory=new_uuid)


_LIMITED = {"template_version_dry_run": "unfinished dry runs", "template_version_import": "unfinished imports"}
"""What one person could queue without end, and how it counts. Builds are no such: a workspace has one at a time."""


async def enqueue_job(tx: Tx, new: NewJob, now: datetime) -> JobRow:
    """Puts work into the queue; daemons are woken when `tx` commits. Raises Conflict for who has too much in it."""
    kind = _LIMITED.get(new.type)
    if kind is None:
        return await _enqueue(tx, new, now)
    async with within_limit(tx, kind, new.initiator_id, now):
        return await _enqueue(tx, new, now)


async def _enqueue(tx: Tx, new: NewJob, now: datetime) -> JobRow:
    job = JobRow(
        id=new.id,
        created_at=now,
        updated_at=now,
        started_at=None,
        completed_at=None,
        canceled_at=None,
        error="",
        error_code="",
        organization_id=new.organization_id,
        initiator_id=new.initiator_id,
        provisioner=new.provisioner,
        file_id=new.file_id,
        type=new.type,
        input=dict(new.input),
        worker_id=None,
        tags=dict(new.tags),
        priority=new.priority,
        logs_length=0,
        logs_overflowed=False,
    )
    await job_store.insert_job(tx, job)
    notice = {"organization_id": str(job.organization_id), "type": job.provisioner, "tags": job.tags}
    text = json.dumps(notice)
    if len(text) > _MAX_NOTICE:
        text = json.dumps({**notice, "tags": {}})
    await notify(tx, POSTED, text)
    return job
