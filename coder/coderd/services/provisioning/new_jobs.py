"""Creation of provisioner jobs: the row and the notice that wakes daemons, in the caller's transaction.

A version or a build and its job appear together, and a rollback wakes no daemon. Assignment is `job_queue.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.ids import new_uuid
from coder.base.json_types import Json
from coder.coderd.services.foundation.object_limits import within_limit
from coder.coderd.store.engine.pubsub import notify
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.domain.provisioning.jobs import JobType
from coder.domain.provisioning.tags import Tags

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

POSTED = "provisioner_job_posted"
"""NOTIFY channel of new jobs: `{"organization_id", "type", "tags"}`, as upstream."""

_MAX_NOTICE = 7000
"""Bytes of a notice; Postgres rejects 8000 or more. A longer notice omits the tags, which wakes more daemons."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to create."""

    organization_id: UUID
    initiator_id: UUID
    provisioner: str
    file_id: UUID
    type: JobType
    input: Mapping[str, Json]
    tags: Tags
    "Required tags, normalized by `normalize_tags` (`coder/domain/provisioning/tags.py`)."
    priority: int = 0
    id: UUID = field(default_factory=new_uuid)


_LIMITED = {"template_version_dry_run": "unfinished dry runs", "template_version_import": "unfinished imports"}
"""Limit by type of job, for types that a user could queue without end. A workspace has one build at a time."""


async def enqueue_job(tx: Tx, new: NewJob, now: datetime) -> JobRow:
    """Queue a job; daemons are woken when `tx` commits. Raises Conflict when the user has too many jobs."""
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
    await wake_daemons(tx, job.organization_id, job.provisioner, job.tags)
    return job


async def wake_daemons(tx: Tx, organization_id: UUID, provisioner: str, tags: Tags) -> None:
    """Make the daemons that could run such a job poll the queue when `tx` commits."""
    notice = {"organization_id": str(organization_id), "type": provisioner, "tags": dict(tags)}
    text = json.dumps(notice)
    if len(text) > _MAX_NOTICE:
        text = json.dumps({**notice, "tags": {}})
    await notify(tx, POSTED, text)
