"""Handlers of provisioner jobs: one for each type of job, passed in by the composition root.

This package queues jobs and answers daemons. The contents and results of builds are handled by
`services/workspaces/builds/build_jobs.py`, of imports and dry runs by
`services/templates/imports/version_jobs.py`. Both packages are above this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.store.provisioning.jobs import JobRow
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


AfterCommit = Callable[[], None]
"""Does what follows a transaction in this process. It is left out when the answer to the commit is lost."""


def nothing_follows() -> None:
    """`AfterCommit` that does nothing."""


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """Result of a daemon's update: values of variables, and missing ones."""

    values: list[provisioner_pb2.VariableValue] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    "Required variables that have no value."


class JobHandler(Protocol):
    """Handler of a type of job. Methods with `tx` run in the transaction that changes the job, and must not wait."""

    result: str
    "Field of a `CompletedJob` with the result of such a job."

    async def describe(self, job: JobRow, acquired: provisionerd_pb2.AcquiredJob) -> None:
        """Add the job's content for a daemon. Raises Invalid when something it depends on was deleted."""

    async def update(self, tx: Tx, job: JobRow, request: provisionerd_pb2.UpdateJobRequest, now: datetime) -> JobUpdate:
        """Store a daemon's report on a running job."""
        ...

    async def complete(
        self, tx: Tx, worker: Worker, job: JobRow, request: provisionerd_pb2.CompletedJob, now: datetime
    ) -> str:
        """Store the result; return the error that the job completes with, usually none. Raises BadResultError."""
        ...

    async def fail(self, tx: Tx, job: JobRow, request: provisionerd_pb2.FailedJob | None, now: datetime) -> None:
        """Store the effects of a failed job; without a request, no daemon reported its end."""

    async def ended(
        self,
        tx: Tx,
        job_id: UUID,
        worker: Worker | None = None,
        completed: provisionerd_pb2.CompletedJob | None = None,
    ) -> AfterCommit:
        """Follow up on a job's end: what must not be lost in its transaction, and the rest in the returned function.
        `worker` is set when it reported the end itself."""
        ...


@dataclass(frozen=True, slots=True)
class JobHandlers:
    """Handler of each type of job, and of the dry runs that preview updates."""

    by_type: Mapping[str, JobHandler]
    previews: JobHandler

    def of(self, job: JobRow) -> JobHandler:
        return self.previews if job.previewed_workspace is not None else self.by_type[job.type]
