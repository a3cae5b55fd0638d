"""Archives of Terraform modules: uploaded by an import that downloaded them, and read by builds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

import trio

from coder.api.base.refusals import Invalid, Refusal
from coder.base.ids import new_uuid
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.templates import files as file_store
from coder.coderd.store.templates import system_files
from coder.coderd.store.templates import template_versions as version_store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

UPLOAD_START = 60.0
"Seconds that an upload has, plus time for received bytes, as for bodies of requests."
UPLOAD_SLOWEST = 4096.0
"Bytes per second below which an upload fails."
UPLOAD_TOTAL = 3600.0
"Seconds for an entire upload."


class ModuleFiles:
    """Module archives that daemons uploaded, until their job completes.

    Unnamed temporary files suffice: when a restart loses one, the version has no cached modules, and builds fetch them
    again.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._files: dict[UUID, tuple[bytes, BinaryIO, object]] = {}
        "Archive by worker, which has one job at a time; so uploads do not evict another worker's."
        self._uploads: dict[UUID, trio.CancelScope] = {}
        "Running uploads, by worker."

    @contextmanager
    def receiving(self, worker: Worker) -> Iterator[Callable[[int], None]]:
        """Time an upload, which reports received bytes by the yielded function. Raises Invalid when it is too slow.

        A worker has one upload: the next one cancels it, so that a hung link does not block the worker.
        """
        earlier = self._uploads.get(worker.id)
        if earlier is not None:
            earlier.cancel()
        last = trio.current_time() + UPLOAD_TOTAL
        with trio.CancelScope(deadline=trio.current_time() + UPLOAD_START) as scope:
            self._uploads[worker.id] = scope

            def received(size: int) -> None:
                scope.deadline = min(scope.deadline + size / UPLOAD_SLOWEST, last)

            try:
                yield received
            finally:
                if self._uploads.get(worker.id) is scope:
                    del self._uploads[worker.id]
        if scope.cancelled_caught:
            raise Invalid("the upload was too slow, or another one began")

    def put(self, worker: Worker, digest: bytes, content: BinaryIO, link: object) -> None:
        """Store the file of a worker, which came over this link; takes ownership of it."""
        self.forget(worker)
        self._files[worker.id] = (digest, content, link)

    def get(self, worker: Worker, digest: bytes) -> BinaryIO | None:
        """Return the worker's archive; this object still owns it."""
        known, content, _ = self._files.get(worker.id, (b"", None, None))
        return content if digest and digest == known else None

    def forget(self, worker: Worker, link: object = None) -> None:
        """Delete the archive of a worker whose job ended, or only if it came over `link`: there may be another link."""
        entry = self._files.get(worker.id)
        if entry is not None and (link is None or link is entry[2]):
            del self._files[worker.id]
            entry[1].close()


async def require_running_import(ctx: Context, worker: Worker) -> None:
    """Require a running import of the worker; other workers have no modules to upload. Raises Invalid."""
    jobs = await ctx.db.read(job_store.list_worker_jobs, worker.id)
    if not any(job.type == "template_version_import" and job.completed_at is None for job in jobs):
        raise Invalid("you have no import running that modules could belong to")


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A stored archive of modules."""

    id: UUID
    digest: bytes
    "SHA-256 of the archive."
    size: int


async def find_module_file(ctx: Context, worker: Worker, file_id: str) -> ModuleFile:
    """Return the archive of modules of a build that the worker runs. Raises Refusal."""
    try:
        parsed_id = UUID(file_id)
    except ValueError as error:
        raise Invalid("parse file id: not a UUID") from error
    file = await ctx.db.read(_find_module_file, worker.id, parsed_id)
    if file is None:
        raise Refusal("no build you run has a module file of that id")
    return file


async def _find_module_file(tx: Tx, worker_id: UUID, file_id: UUID) -> ModuleFile | None:
    if not await version_store.is_module_file_of_worker(tx, worker_id, file_id):
        return None
    head = await system_files.get_file_head(tx, file_id)
    return ModuleFile(file_id, bytes.fromhex(head.hash), await file_store.get_size(tx, file_id) or 0) if head else None


async def read_piece(ctx: Context, file: ModuleFile, offset: int, size: int) -> bytes:
    """Return at most `size` bytes from `offset` on."""
    return await ctx.db.read(file_store.read_piece, file.id, offset, size)


async def keep_modules(
    tx: Tx, job: JobRow, version_id: UUID, plan: bytes, module_files: BinaryIO | None, now: datetime
) -> None:
    """Store the plan of an import and the archive of its modules, of whichever there is."""
    if not plan and module_files is None:
        return
    file_id = await _put_file(tx, module_files, job.initiator_id, now) if module_files is not None else None
    await version_store.put_terraform(tx, version_id, cached_plan=plan or b"{}", module_files_id=file_id, now=now)


async def _put_file(tx: Tx, content: BinaryIO, created_by: UUID, now: datetime) -> UUID:
    content.seek(0)
    hashed = hashlib.sha256()
    while piece := content.read(file_store.PIECE):
        hashed.update(piece)
    digest = hashed.hexdigest()
    row = file_store.FileRow(new_uuid(), digest, created_by, now, "application/x-tar", b"")
    return await file_store.keep_file(tx, row, content)
