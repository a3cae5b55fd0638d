"""Jobs as daemons receive them when they acquire one (docs/protocol/provisioners.md#calls)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from coder.api.base.refusals import Invalid
from coder.coderd.store.people import system_users
from coder.coderd.store.provisioning.jobs import JobRow as JobRow
from coder.coderd.store.templates import files as file_store
from coder.coderd.store.templates import system_files
from coder.rpc.proto import provisionerd_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


MAX_MESSAGE = 4 << 20
"""Bytes of a message of the protocol (dRPC's limit upstream, which genuine daemons enforce)."""


async def describe_job(ctx: Context, job: JobRow) -> provisionerd_pb2.AcquiredJob:
    """Return a job as a daemon receives it. Raises Invalid when the job cannot be sent."""
    acquired = await ctx.db.read(_describe, job)
    await ctx.services.api.job_handlers.of(job).describe(job, acquired)
    size = acquired.ByteSize()
    if size > MAX_MESSAGE:
        raise Invalid(f"payload was too big: {size} > {MAX_MESSAGE}")
    return acquired


async def _describe(tx: Tx, job: JobRow) -> provisionerd_pb2.AcquiredJob:
    size = await file_store.get_size(tx, job.file_id)
    if size is not None and size > MAX_MESSAGE:
        raise Invalid(f"payload was too big: {size} > {MAX_MESSAGE}")
    file = await system_files.get_file(tx, job.file_id)
    initiator = await system_users.get_user(tx, job.initiator_id)
    if file is None:
        raise Invalid("get template source archive: the file was deleted")
    return provisionerd_pb2.AcquiredJob(
        job_id=str(job.id),
        created_at=_unix_ms(job.created_at),
        provisioner=job.provisioner,
        user_name=initiator.username if initiator else "",
        template_source_archive=file.data,
    )


def _unix_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
