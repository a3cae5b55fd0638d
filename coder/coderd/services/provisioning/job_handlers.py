"""Handlers of provisioner jobs: one for each type of job, passed in by the composition root.

This package queues jobs and answers daemons. The contents and results of builds are handled by
`services/workspaces/builds/build_jobs.py`, of imports and dry runs by
`services/templates/imports/version_jobs.py`. Both packages are above this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.store.provisioning.jobs import JobRow
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """What an update settled."""

    values: list[provisioner_pb2.VariableValue] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    "Required variables that have no value."


class JobHandler(Protocol):
    """One kind of job. What takes `tx` runs in the transaction that changes the job, and waits for nothing else."""

    result: str
    "The part of a `CompletedJob` that holds the result of such a job."

    async def describe(self, job: JobRow, acquired: provisionerd_pb2.AcquiredJob) -> None:
        """Adds the work to what a daemon is handed. Raises Invalid when something it stands on is gone."""

    async def update(self, tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
        """Stores what a daemon tells of work that goes on."""
        ...

    async def complete(
        self, tx: Tx, worker: Worker, job: JobRow, request: provisionerd_pb2.CompletedJob, now: datetime
    ) -> str:
        """Stores the result; returns the error the job completes with, usually none. Raises BadResultError."""
        ...

    async def fail(self, tx: Tx, job: JobRow, request: provisionerd_pb2.FailedJob | None, now: datetime) -> None:
        """Stores what is left of work that failed; without a request no daemon told how it ended."""

    async def ended(
        self, job_id: UUID, worker: Worker | None = None, completed: provisionerd_pb2.CompletedJob | None = None
    ) -> None:
        """After the transaction that ended the job. `worker` reported the end itself."""


@dataclass(frozen=True, slots=True)
class JobHandlers:
    """`ctx.parts[JobHandlers]`, set before any daemon is served."""

    by_type: Mapping[str, JobHandler]

    def of(self, job: JobRow) -> JobHandler:
        return self.by_type[job.type]


def handlers_of(ctx: Context) -> JobHandlers:
    """The handlers of this server."""
    found = ctx.find(JobHandlers)
    if found is None:
        raise LookupError("no handlers of jobs were handed in")
    return found
