"""Calls of provisioner daemons: assignment of jobs, reports, upload and download of module archives."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar

import trio
from google.protobuf.message import Message

from coder.api.base.refusals import Refusal
from coder.base.errors import find_outage
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.coderd.services.foundation.outages import until_available
from coder.coderd.services.provisioning import acquired_jobs, daemon_calls, job_endings
from coder.coderd.services.provisioning.acquired_jobs import JobRow
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.daemon_registration import Presence
from coder.coderd.services.provisioning.job_queue import RequireRight
from coder.coderd.services.templates.imports import module_files
from coder.domain.provisioning.jobs import CANCELED_BY_BREAK
from coder.rpc.calls import Bidi, Handler, Handlers, ServerCall, ServerStream, Unary
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import overlay_pb2, provisioner_pb2, provisionerd_pb2
from coder.rpc.services import OVERLAY, PROVISIONER_DAEMON

if TYPE_CHECKING:
    from uuid import UUID

    from coder.coderd.services.foundation.context import Context

MAX_FILE = 20 << 20
"""Ours: bytes of a module archive, and of one piece of it."""
MAX_PIECE = 2 << 20
_LONG_POLL = 5.0
"""Seconds the deprecated AcquireJob waits for a job."""

_log = get_logger("provisioners")

_Report = TypeVar("_Report", bound=Message)
_JobCall: TypeAlias = ServerCall[provisionerd_pb2.AcquiredJob, provisionerd_pb2.CancelAcquire]
_UploadCall: TypeAlias = ServerCall[provisionerd_pb2.Empty, provisioner_pb2.FileUpload]


class DaemonConnection:
    """Calls of one connected daemon."""

    def __init__(self, ctx: Context, worker: Worker, require_right: RequireRight, presence: Presence) -> None:
        self._ctx = ctx
        self._worker = worker
        self._presence = presence
        self._require_right = require_right
        self._queue = ctx.services.api.job_queue
        self.asked = trio.Event()
        """Set by the first request for work."""
        self.assignment_failed = trio.Event()
        """Set when the database was away during an assignment: a job may have been assigned without a recipient."""
        self.current_job: UUID | None = None
        """Last job that this connection delivered."""
        self.job_ended = trio.Event()
        """Set by the first report that ends a job."""

    @property
    def worker(self) -> Worker:
        return self._worker

    def handlers(self) -> Handlers:
        """Return the handlers by full RPC name."""
        pb = provisionerd_pb2
        return {
            f"{PROVISIONER_DAEMON}AcquireJob": Unary(self._acquire, pb.Empty),
            f"{PROVISIONER_DAEMON}AcquireJobWithCancel": Bidi(self._acquire_with_cancel, pb.CancelAcquire),
            f"{PROVISIONER_DAEMON}CommitQuota": self._report(daemon_calls.commit_quota, pb.CommitQuotaRequest),
            f"{PROVISIONER_DAEMON}UpdateJob": self._report(daemon_calls.update_job, pb.UpdateJobRequest),
            f"{PROVISIONER_DAEMON}FailJob": self._report(job_endings.fail_job, pb.FailedJob, ends=True),
            f"{PROVISIONER_DAEMON}CompleteJob": self._report(job_endings.complete_job, pb.CompletedJob, ends=True),
            f"{PROVISIONER_DAEMON}UploadFile": Bidi(self._upload, provisioner_pb2.FileUpload),
            f"{PROVISIONER_DAEMON}DownloadFile": ServerStream(self._download, pb.FileRequest),
            f"{OVERLAY}Drain": Unary(self._drain, overlay_pb2.DrainRequest),
        }

    def _report(
        self,
        service: Callable[[Context, Worker, _Report], Awaitable[Message | None]],
        request: type[_Report],
        *,
        ends: bool = False,
    ) -> Handler:
        async def answer(message: _Report) -> Message:
            # Shielded: a received report is recorded, even when the connection breaks meanwhile.
            with trio.CancelScope(shield=True):
                reply = await service(self._ctx, self._worker, message)
            if ends:
                self.job_ended.set()
            return reply if isinstance(reply, Message) else provisionerd_pb2.Empty()

        return Unary(answer, request)

    async def _drain(self, _request: overlay_pb2.DrainRequest) -> overlay_pb2.DrainResponse:
        await self._presence.drain()
        return overlay_pb2.DrainResponse()

    async def _acquire_with_cancel(self, call: _JobCall) -> None:
        """Send one job, or an empty message once the daemon cancels; an acquired job is sent even then."""

        async def deliver(message: provisionerd_pb2.AcquiredJob) -> None:
            await call.send(message)

        canceled = await self._hand_over(deliver, call)
        if canceled:
            await call.send(provisionerd_pb2.AcquiredJob())
        await call.close()

    async def _hand_over(
        self, deliver: Callable[[provisionerd_pb2.AcquiredJob], Awaitable[None]], call: _JobCall
    ) -> bool:
        """Wait for a job and deliver it; True when the daemon canceled first."""
        while True:
            held: list[JobRow] = []
            try:
                await self._wait_for_job(call, held)
                if not held:
                    return True
                message = await self._describe(held[0])
                if message is not None:
                    await deliver(message)
                    self.current_job = held[0].id
                    held.clear()
                    return False
                held.clear()
            except RpcClosed:
                raise
            except Exception as error:
                if find_outage(error):
                    self.assignment_failed.set()
                raise
            finally:
                await self._give_up(held)

    async def _wait_for_job(self, call: _JobCall, held: list[JobRow]) -> None:
        """Acquire a job. Raises the errors of the daemon's authorization."""
        self.asked.set()
        with single_failure():
            await self._job_or_cancel(call, held)

    async def _job_or_cancel(self, call: _JobCall, held: list[JobRow]) -> None:
        async with trio.open_nursery() as nursery:

            async def stop_on_cancel() -> None:
                try:
                    await call.receive()
                except (trio.EndOfChannel, RpcError):
                    pass  # it sends no more, so it takes no job either
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop_on_cancel)
            held.append(await self._queue.acquire(self._worker.id, self._worker.offer, self._require_right))
            nursery.cancel_scope.cancel()

    async def _describe(self, job: JobRow) -> provisionerd_pb2.AcquiredJob | None:
        """Return the job for the daemon; None after failing a job that cannot be assigned."""
        try:
            return await until_available(self._describe_once, job)
        except Refusal as error:
            reason = f"request job was invalidated: {error.message}"
        except Exception as error:
            _log.error("a job could not be described", job=job.id, error=error)
            reason = "request job was invalidated: internal error"
        await job_endings.abandon_job(self._ctx, job.id, reason)
        return None

    async def _describe_once(self, job: JobRow) -> provisionerd_pb2.AcquiredJob:
        await self._require_right()  # may have been revoked while the job was acquired
        return await acquired_jobs.describe_job(self._ctx, job)

    async def _give_up(self, held: list[JobRow]) -> None:
        # The daemon never received these: they would never finish.
        with trio.move_on_after(10, shield=True) as scope:
            for job in held:
                await until_available(job_endings.abandon_job, self._ctx, job.id, CANCELED_BY_BREAK)
        if scope.cancelled_caught:
            self.assignment_failed.set()

    async def _acquire(self, _request: provisionerd_pb2.Empty) -> provisionerd_pb2.AcquiredJob:
        """Serve the deprecated long poll: an empty job after 5 s."""
        held: list[JobRow] = []
        try:
            with trio.move_on_after(_LONG_POLL):
                held.append(await self._queue.acquire(self._worker.id, self._worker.offer, self._require_right))
            message = await self._describe(held[0]) if held else None
            held.clear()
            return message or provisionerd_pb2.AcquiredJob()
        finally:
            await self._give_up(held)

    async def _upload(self, call: _UploadCall) -> None:
        """Receive module archives of an import, in pieces."""
        header = (await call.receive()).data_upload
        if header.upload_type != provisioner_pb2.UPLOAD_TYPE_MODULE_FILES:
            raise RpcError(0, "unsupported file upload type")
        if not 0 <= header.file_size <= MAX_FILE or header.chunks > -(-MAX_FILE // MAX_PIECE):
            raise RpcError(0, f"file size {header.file_size} is over the limit of {MAX_FILE}")
        await module_files.require_running_import(self._ctx, self._worker)
        files = self._ctx.services.api.module_files
        with files.receiving(self._worker) as progress, contextlib.ExitStack() as unless_kept:
            content = unless_kept.enter_context(tempfile.TemporaryFile(prefix="coder-modules-"))
            await _receive_pieces(call, header, content, progress)
            await module_files.require_running_import(self._ctx, self._worker)
            files.put(self._worker, header.data_hash, content, self)
            unless_kept.pop_all()
        await call.send(provisionerd_pb2.Empty())
        await call.close()

    async def _download(
        self, request: provisionerd_pb2.FileRequest, send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Send module archives for builds, in pieces."""
        try:
            file = await module_files.find_module_file(self._ctx, self._worker, request.file_id)
        except Refusal as error:
            await send(provisioner_pb2.FileUpload(error=provisioner_pb2.FailedFile(error=error.message)))
            raise
        chunks = -(-file.size // MAX_PIECE)
        header = provisioner_pb2.DataUpload(
            upload_type=provisioner_pb2.UPLOAD_TYPE_MODULE_FILES,
            data_hash=file.digest,
            file_size=file.size,
            chunks=chunks,
        )
        await send(provisioner_pb2.FileUpload(data_upload=header))
        for number in range(chunks):
            piece = await module_files.read_piece(self._ctx, file, number * MAX_PIECE, MAX_PIECE)
            chunk = provisioner_pb2.ChunkPiece(data=piece, full_data_hash=file.digest, piece_index=number)
            await send(provisioner_pb2.FileUpload(chunk_piece=chunk))


async def _receive_pieces(
    call: _UploadCall,
    header: provisioner_pb2.DataUpload,
    target: BinaryIO,
    progress: Callable[[int], None],
) -> None:
    """Write the pieces in order, checked against the header. Raises RpcError."""
    size, digest = 0, hashlib.sha256()
    for number in range(header.chunks):
        try:
            message = await call.receive()
        except trio.EndOfChannel:
            raise RpcError(0, f"the upload ended after {number} of {header.chunks} pieces") from None
        piece = message.chunk_piece
        if message.WhichOneof("type") != "chunk_piece" or piece.piece_index != number:
            raise RpcError(0, f"piece {number} of the upload was expected")
        size += len(piece.data)
        if size > header.file_size:
            raise RpcError(0, "the upload is longer than announced")
        progress(len(piece.data))
        digest.update(piece.data)
        await trio.to_thread.run_sync(target.write, piece.data)
    if size != header.file_size or digest.digest() != header.data_hash:
        raise RpcError(0, "the upload does not have the announced hash")
