"""Archives of Terraform modules on their way: from an import that downloaded them to builds that use them."""

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
from coder.coderd.store.templates import template_versions as version_store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

UPLOAD_START = 60.0
"Seconds an upload has, and more for what came of it, as bodies of requests have."
UPLOAD_SLOWEST = 4096.0
"Bytes a second below which a daemon is not waited for."
UPLOAD_TOTAL = 3600.0
"Seconds for the whole of it."


class ModuleFiles:
    """Module archives daemons uploaded, until the job that named them completes. Made once, see `Context.part`.

    Files without a name are enough: when a restart loses one, the version merely has no cached modules, and builds
    fetch them again.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._files: dict[UUID, tuple[bytes, BinaryIO, object]] = {}
        "One archive a worker: it works on one job at a time, and nobody's uploads push another's out."
        self._uploads: dict[UUID, trio.CancelScope] = {}
        "Those under way, by worker."

    @contextmanager
    def receiving(self, worker: Worker) -> Iterator[Callable[[int], None]]:
        """For the length of an upload, which says how many bytes came; raises Invalid when they come too slowly.

        A worker has one under way: the next ends it, so that a link that hangs is in nobody's way.
        """
        earlier = self._uploads.get(worker.id)
        if earlier is not None:
            earlier.cancel()
        last = trio.current_time() + UPLOAD_TOTAL
        with trio.CancelScope(deadline=trio.current_time() + UPLOAD_START) as scope:
            self._uploads[worker.id] = scope

            def came(size: int) -> None:
                scope.deadline = min(scope.deadline + size / UPLOAD_SLOWEST, last)

            try:
                yield came
            finally:
                if self._uploads.get(worker.id) is scope:
                    del self._uploads[worker.id]
        if scope.cancelled_caught:
            raise Invalid("the upload was too slow, or another one began")

    def put(self, worker: Worker, digest: bytes, content: BinaryIO, link: object) -> None:
        """Takes the file over, which came on this link."""
        self.forget(worker)
        self._files[worker.id] = (digest, content, link)

    def get(self, worker: Worker, digest: bytes) -> BinaryIO | None:
        """The archive, which stays ours."""
        known, content, _ = self._files.get(worker.id, (b"", None, None))
        return content if digest and digest == known else None

    def forget(self, worker: Worker, link: object = None) -> None:
        """The worker's job is over; or a link of it, which takes only what came on it along: there may be another."""
        found = self._files.get(worker.id)
        if found is not None and (link is None or link is found[2]):
            del self._files[worker.id]
            found[1].close()


async def require_running_import(ctx: Context, worker: Worker) -> None:
    """Raises Invalid unless the worker has an import under way: nobody else has modules to hand over."""
    jobs = await ctx.db.read(job_store.list_worker_jobs, worker.id)
    if not any(job.type == "template_version_import" and job.completed_at is None for job in jobs):
        raise Invalid("you have no import running that modules could belong to")


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """One that is stored."""

    id: UUID
    digest: bytes
    "SHA-256."
    size: int


async def find_module_file(ctx: Context, worker: Worker, file_id: str) -> ModuleFile:
    """The archive of modules that belongs to a build the worker runs. Raises Refusal."""
    try:
        wanted = UUID(file_id)
    except ValueError as error:
        raise Invalid("parse file id: not a UUID") from error
    found = await ctx.db.read(_find_module_file, worker.id, wanted)
    if found is None:
        raise Refusal("no build you run has a module file of that id")
    return found


async def _find_module_file(tx: Tx, worker_id: UUID, file_id: UUID) -> ModuleFile | None:
    if not await version_store.is_module_file_of_worker(tx, worker_id, file_id):
        return None
    head = await file_store.get_file_head(tx, file_id)
    return ModuleFile(file_id, bytes.fromhex(head.hash), await file_store.get_size(tx, file_id) or 0) if head else None


async def read_piece(ctx: Context, file: ModuleFile, offset: int, size: int) -> bytes:
    """At most `size` bytes from there on."""
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
