"""Archives of Terraform modules on their way: from an import that downloaded them to builds that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.foundation.errors import Invalid, Refusal
from coder.coderd.services.provisioning import import_work
from coder.coderd.services.provisioning.worker import Worker
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.templates import files as file_store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


class ModuleFiles:
    """Module archives daemons uploaded, until the job that named them completes. Made once, see `Context.part`.

    Memory is enough: when a restart loses one, the version merely has no cached modules, and builds fetch them again.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._files: dict[UUID, tuple[bytes, bytes]] = {}
        "One archive a worker: it works on one job at a time, and nobody's uploads push another's out."

    def put(self, worker: Worker, digest: bytes, data: bytes) -> None:
        self._files[worker.id] = (digest, data)

    def get(self, worker: Worker, digest: bytes) -> bytes:
        """The archive, or nothing."""
        known, data = self._files.get(worker.id, (b"", b""))
        return data if digest and digest == known else b""

    def forget(self, worker: Worker) -> None:
        """The worker's job is over, or its connection."""
        self._files.pop(worker.id, None)


async def require_running_import(ctx: Context, worker: Worker) -> None:
    """Raises Invalid unless the worker has an import under way: nobody else has modules to hand over."""
    jobs = await ctx.db.read(job_store.list_worker_jobs, worker.id)
    if not any(job.type == "template_version_import" and job.completed_at is None for job in jobs):
        raise Invalid("you have no import running that modules could belong to")


async def read_module_file(ctx: Context, worker: Worker, file_id: str) -> bytes:
    """The archive of modules that belongs to a build the worker runs. Raises Refusal."""
    try:
        wanted = UUID(file_id)
    except ValueError as error:
        raise Invalid("parse file id: not a UUID") from error
    data = await ctx.db.read(_read_module_file, worker.id, wanted)
    if data is None:
        raise Refusal("no build you run has a module file of that id")
    return data


async def _read_module_file(tx: Tx, worker_id: UUID, file_id: UUID) -> bytes | None:
    if not await import_work.is_module_file_of_worker(tx, worker_id, file_id):
        return None
    file = await file_store.get_file(tx, file_id)
    return file.data if file else None
