"""The link of provisioner daemons: yamux and dRPC over a WebSocket, or over a pipe for built-in daemons.

The checks before the upgrade and their order are docs/protocol/rpc.md#daemons; the calls are
docs/protocol/provisioners.md#calls. What the calls do is `services/provisioning/job_work.py`. A link that ends leaves
the daemon's running job alone: the daemon comes back and goes on, or the reaper ends the job.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from google.protobuf.message import Message

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION, PROVISIONER_API_VERSION
from coder.coderd.rpc_endpoints.pipe import stream_pair
from coder.coderd.services.access.session_revocation import SessionEndedError, SessionRegistry
from coder.coderd.services.foundation.errors import Invalid, InvalidFields, NotFound, Refusal
from coder.coderd.services.provisioning import job_work, provisioners
from coder.coderd.services.provisioning.daemon_health import DaemonMesh
from coder.coderd.services.provisioning.job_queue import JobQueue
from coder.coderd.services.provisioning.job_work import JobRow, ModuleFiles, Worker
from coder.coderd.services.provisioning.provisioners import (
    KEY_DELETED,
    DaemonAdmission,
    DaemonApplication,
    Introduction,
)
from coder.domain.access.policy import NIL
from coder.domain.access.route_scopes import PROVISIONER
from coder.domain.provisioning.jobs import CANCELED_BY_BREAK, LOST_AFTER
from coder.domain.provisioning.provisioners import BUILT_IN_KEY, HEARTBEAT, PROVISIONERS, explain_incompatible
from coder.domain.provisioning.tags import NIL_OWNER, normalize_tags, parse_tag
from coder.rpc.calls import Bidi, Handlers, ServerCall, ServerStream, Unary
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2
from coder.rpc.session import Session, open_session

if TYPE_CHECKING:
    from coder.coderd.rpc_endpoints.upgrades import EndpointTable, Upgrade, UpgradeRequest
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context

MAX_MESSAGE = 256 * 1024
"""Bytes of one WebSocket message on this link (docs/protocol/rpc.md#websocket)."""
MAX_FILE = 20 << 20
MAX_PIECE = 2 << 20
REVOKED_GRACE = 10.0
"""Seconds a daemon whose key was deleted gets to end its job (ours): what it made must not be forgotten."""
_LONG_POLL = 5.0
# Seconds the deprecated AcquireJob waits for work.
_SERVICE = "/provisionerd.ProvisionerDaemon/"

_log = get_logger("provisioners")


def register(table: EndpointTable) -> None:
    """Adds this module's link."""
    table.add(
        "/api/v2/organizations/{organization}/provisionerdaemons/serve",
        serve_provisioner,
        scope=PROVISIONER,
        refuses=(400, 403),
    )


async def serve_provisioner(ctx: Context, upgrade: Upgrade) -> None:
    """`GET /api/v2/organizations/{organization}/provisionerdaemons/serve`."""
    request = upgrade.request
    organization = await provisioners.find_organization(ctx, upgrade.params["organization"])
    tags = _read_tags(request.query.get("tag", []))
    kinds = _read_kinds(request.query.get("provisioner", []))
    admission = await provisioners.admit(
        ctx,
        DaemonApplication(
            organization_id=organization.id if organization else NIL,
            is_default_organization=organization is not None and organization.is_default,
            key=request.headers.get("coder-provisioner-daemon-key", ""),
            psk=request.headers.get("coder-provisioner-daemon-psk", ""),
            credentials=request.credentials,
            tags=tags,
        ),
    )
    if organization is None:  # not before: what there is, is nothing for whoever is not let in
        raise NotFound
    provisioners.check_tags(admission.tags)
    version = _read_version(request)
    introduction = Introduction(
        name=request.first("name"),
        provisioners=kinds,
        version=request.headers.get("x-coder-build-version", ""),
        api_version=version,
    )
    worker = await provisioners.register(ctx, organization.id, admission, introduction)
    websocket = await upgrade.accept_websocket(max_message=MAX_MESSAGE, binary_only=True)
    try:
        await _serve(ctx, websocket, worker, admission)
    finally:
        with trio.move_on_after(2, shield=True):
            await websocket.close(1001, "")


def _read_tags(given: Sequence[str]) -> dict[str, str]:
    tags = {}
    for text in given:
        pair = parse_tag(text)
        if pair is None:
            raise Invalid(f'Invalid format for tag "{text}". Key and value must be separated with =.')
        tags[pair[0]] = pair[1]
    return tags


def _read_kinds(given: Sequence[str]) -> list[str]:
    if not given:
        raise Invalid("The provisioner query parameter must be specified.")
    for kind in given:
        if kind not in PROVISIONERS:
            raise Invalid(f'Unknown provisioner type "{kind}"')
    return list(given)


def _read_version(request: UpgradeRequest) -> str:
    version = request.first("version", "1.0") or "1.0"
    reason = explain_incompatible(version, PROVISIONER_API_VERSION)
    if reason is not None:
        raise InvalidFields(("version", reason), message="Incompatible or unparsable version")
    return version


@asynccontextmanager
async def connect_built_in(
    ctx: Context, name: str, kinds: Sequence[str], tags: dict[str, str] | None = None
) -> AsyncIterator[Session]:
    """A session for a daemon inside this process, with the very handlers external ones get."""
    admission = DaemonAdmission(normalize_tags(NIL_OWNER, tags), BUILT_IN_KEY)
    introduction = Introduction(name, list(kinds), BUILD_VERSION, PROVISIONER_API_VERSION)
    try:
        organization = await provisioners.find_organization(ctx, "default")
        if organization is None:
            raise LookupError("there is no default organization")
        worker = await provisioners.register(ctx, organization.id, admission, introduction)
    except Exception as error:
        # The daemon tries again after any refusal of this kind; anything else would end it, and the server with it.
        raise CoderError("not_registered", f"the daemon {name} could not be registered: {error}") from error
    ours, theirs = stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_serve, ctx, ours, worker, admission)
        async with open_session(theirs, role="client") as session:
            yield session
        nursery.cancel_scope.cancel()


async def _serve(ctx: Context, stream: trio.abc.Stream, worker: Worker, admission: DaemonAdmission) -> None:
    """Answers the daemon until its connection ends, the server stops, or its key is deleted."""
    link, mesh = DaemonConnection(ctx, worker), DaemonMesh(ctx, worker)
    _log.info("a provisioner daemon connected", daemon=worker.name, id=worker.id)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep_seen, ctx, worker)
            nursery.start_soon(_end_lost_jobs, ctx, worker, link)
            if admission.key_id != BUILT_IN_KEY:
                # A built-in daemon is stopped by its own task, after it has said how its job ended.
                nursery.start_soon(_leave_on_stop, ctx, nursery.cancel_scope)
                nursery.start_soon(mesh.keep_measuring)
            if admission.key_id.int > BUILT_IN_KEY.int + 2:
                nursery.start_soon(_leave_on_key_deleted, ctx, link, str(admission.key_id), nursery.cancel_scope)
            if admission.caller is not None:
                nursery.start_soon(_leave_when_signed_out, ctx, admission.caller, nursery.cancel_scope)
            async with open_session(stream, role="server") as session:
                await session.serve({**link.handlers(), **mesh.handlers()})
            nursery.cancel_scope.cancel()
    finally:
        ctx.part(ModuleFiles).forget(worker)
        _log.info("a provisioner daemon left", daemon=worker.name, id=worker.id)


async def _leave_when_signed_out(ctx: Context, caller: Caller, scope: trio.CancelScope) -> None:
    sessions = ctx.part(SessionRegistry)
    with sessions.opened(caller) as opened:
        await sessions.confirm(opened)
        try:
            await opened.run(trio.sleep_forever)
        except SessionEndedError:
            scope.cancel()


async def _keep_seen(ctx: Context, worker: Worker) -> None:
    while True:
        await trio.sleep(HEARTBEAT.total_seconds())
        try:
            await provisioners.keep_seen(ctx, worker)
        except Exception as error:
            # A database that is away comes back; the link must not die of it.
            _log.warn("the heartbeat of a daemon was not written", daemon=worker.name, error=error)


async def _end_lost_jobs(ctx: Context, worker: Worker, link: DaemonConnection) -> None:
    """Once per connection: a daemon that asks for work has none, so what it still holds was lost with its past life."""
    await link.asked.wait()
    await trio.sleep(LOST_AFTER.total_seconds())
    try:
        await job_work.end_lost_jobs(ctx, worker)
    except Exception as error:
        _log.warn("lost jobs were not looked for", daemon=worker.name, error=error)


async def _leave_on_stop(ctx: Context, scope: trio.CancelScope) -> None:
    await ctx.stopping.wait()
    scope.cancel()


async def _leave_on_key_deleted(ctx: Context, link: DaemonConnection, key_id: str, scope: trio.CancelScope) -> None:
    """Shows the daemon out. One that works on a job gets a moment to end it and to hand over the state it has."""
    async with ctx.db.listen(KEY_DELETED) as notices:
        async for _channel, payload in notices:
            if payload == key_id:
                break
    try:
        if await job_work.cancel_revoked(ctx, link.worker):
            with trio.move_on_after(REVOKED_GRACE):
                await link.job_ended.wait()
            await job_work.end_revoked(ctx, link.worker)
    except Exception as error:
        _log.warn("jobs of a daemon whose key was deleted were not ended", daemon=link.worker.name, error=error)
    scope.cancel()


class DaemonConnection:
    """The calls of one connected daemon."""

    def __init__(self, ctx: Context, worker: Worker) -> None:
        self._ctx = ctx
        self._worker = worker
        self._queue: JobQueue = ctx.part(JobQueue)
        self.asked = trio.Event()
        "Set by the first request for work."
        self.job_ended = trio.Event()
        "Set by the first report that ends a job."

    @property
    def worker(self) -> Worker:
        return self._worker

    def handlers(self) -> Handlers:
        """By full RPC name."""
        pb = provisionerd_pb2
        return {
            f"{_SERVICE}AcquireJob": Unary(self._acquire, pb.Empty),
            f"{_SERVICE}AcquireJobWithCancel": Bidi(self._acquire_with_cancel, pb.CancelAcquire),
            f"{_SERVICE}CommitQuota": self._report(job_work.commit_quota, pb.CommitQuotaRequest),
            f"{_SERVICE}UpdateJob": self._report(job_work.update_job, pb.UpdateJobRequest),
            f"{_SERVICE}FailJob": self._report(job_work.fail_job, pb.FailedJob, ends=True),
            f"{_SERVICE}CompleteJob": self._report(job_work.complete_job, pb.CompletedJob, ends=True),
            f"{_SERVICE}UploadFile": Bidi(self._upload, provisioner_pb2.FileUpload),
            f"{_SERVICE}DownloadFile": ServerStream(self._download, pb.FileRequest),
        }

    def _report(
        self, service: Callable[[Context, Worker, Any], Awaitable[Any]], request: type[Message], *, ends: bool = False
    ) -> Unary:
        async def answer(message: Message) -> Message:
            # Shielded: a report that arrived is recorded, even when the connection breaks meanwhile.
            with trio.CancelScope(shield=True):
                reply = await service(self._ctx, self._worker, message)
            if ends:
                self.job_ended.set()
            return reply if isinstance(reply, Message) else provisionerd_pb2.Empty()

        return Unary(answer, request)

    async def _acquire_with_cancel(self, call: ServerCall[Any, Any]) -> None:
        """One job, or an empty message once the daemon cancels; a job in hand is sent even then."""

        async def deliver(message: provisionerd_pb2.AcquiredJob) -> None:
            await call.send(message)

        canceled = await self._hand_over(deliver, call)
        if canceled:
            await call.send(provisionerd_pb2.AcquiredJob())
        await call.close()

    async def _hand_over(
        self, deliver: Callable[[provisionerd_pb2.AcquiredJob], Awaitable[None]], call: ServerCall[Any, Any]
    ) -> bool:
        """Waits for a job and delivers it; True when the daemon canceled first."""
        while True:
            held: list[JobRow] = []
            try:
                await self._wait_for_job(call, held)
                if not held:
                    return True
                message = await self._describe(held[0])
                if message is not None:
                    await deliver(message)
                    held.clear()
                    return False
                held.clear()
            except RpcClosed:
                raise
            finally:
                await self._give_up(held)

    async def _wait_for_job(self, call: ServerCall[Any, Any], held: list[JobRow]) -> None:
        self.asked.set()
        async with trio.open_nursery() as nursery:

            async def stop_on_cancel() -> None:
                try:
                    await call.receive()
                except (trio.EndOfChannel, RpcError):
                    pass  # it sends no more: it does not want the job either
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop_on_cancel)
            held.append(await self._queue.acquire(self._worker.id, self._worker.offer))
            nursery.cancel_scope.cancel()

    async def _describe(self, job: JobRow) -> provisionerd_pb2.AcquiredJob | None:
        """What the daemon gets; None after a job that cannot be handed out was failed."""
        try:
            return await job_work.describe_job(self._ctx, job)
        except Refusal as error:
            reason = f"request job was invalidated: {error.message}"
        except Exception as error:
            _log.error("a job could not be described", job=job.id, error=error)
            reason = "request job was invalidated: internal error"
        await job_work.abandon_job(self._ctx, job.id, reason)
        return None

    async def _give_up(self, held: list[JobRow]) -> None:
        # The daemon never got these: nobody would ever finish them.
        with trio.move_on_after(10, shield=True):
            for job in held:
                await job_work.abandon_job(self._ctx, job.id, CANCELED_BY_BREAK)

    async def _acquire(self, _request: provisionerd_pb2.Empty) -> provisionerd_pb2.AcquiredJob:
        """The deprecated long poll: an empty job after 5 s."""
        held: list[JobRow] = []
        try:
            with trio.move_on_after(_LONG_POLL):
                held.append(await self._queue.acquire(self._worker.id, self._worker.offer))
            message = await self._describe(held[0]) if held else None
            held.clear()
            return message or provisionerd_pb2.AcquiredJob()
        finally:
            await self._give_up(held)

    async def _upload(self, call: ServerCall[Any, Any]) -> None:
        """Module archives of an import, in pieces."""
        header = (await call.receive()).data_upload
        if header.upload_type != provisioner_pb2.UPLOAD_TYPE_MODULE_FILES:
            raise RpcError(0, "unsupported file upload type")
        if not 0 <= header.file_size <= MAX_FILE or header.chunks > -(-MAX_FILE // MAX_PIECE):
            raise RpcError(0, f"file size {header.file_size} is over the limit of {MAX_FILE}")
        await job_work.require_running_import(self._ctx, self._worker)
        data = await _receive_pieces(call, header)
        await job_work.require_running_import(self._ctx, self._worker)
        self._ctx.part(ModuleFiles).put(self._worker, header.data_hash, data)
        await call.send(provisionerd_pb2.Empty())
        await call.close()

    async def _download(
        self, request: provisionerd_pb2.FileRequest, send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Module archives for builds, in pieces."""
        try:
            data = await job_work.read_module_file(self._ctx, self._worker, request.file_id)
        except Refusal as error:
            await send(provisioner_pb2.FileUpload(error=provisioner_pb2.FailedFile(error=error.message)))
            raise
        digest = hashlib.sha256(data).digest()
        pieces = [data[at : at + MAX_PIECE] for at in range(0, len(data), MAX_PIECE)]
        header = provisioner_pb2.DataUpload(
            upload_type=provisioner_pb2.UPLOAD_TYPE_MODULE_FILES,
            data_hash=digest,
            file_size=len(data),
            chunks=len(pieces),
        )
        await send(provisioner_pb2.FileUpload(data_upload=header))
        for number, piece in enumerate(pieces):
            chunk = provisioner_pb2.ChunkPiece(data=piece, full_data_hash=digest, piece_index=number)
            await send(provisioner_pb2.FileUpload(chunk_piece=chunk))


async def _receive_pieces(call: ServerCall[Any, Any], header: provisioner_pb2.DataUpload) -> bytes:
    """The pieces in their order, checked against what the header promised. Raises RpcError."""
    data = bytearray()
    for number in range(header.chunks):
        try:
            message = await call.receive()
        except trio.EndOfChannel:
            raise RpcError(0, f"the upload ended after {number} of {header.chunks} pieces") from None
        piece = message.chunk_piece
        if message.WhichOneof("type") != "chunk_piece" or piece.piece_index != number:
            raise RpcError(0, f"piece {number} of the upload was expected")
        data += piece.data
        if len(data) > header.file_size:
            raise RpcError(0, "the upload is longer than announced")
    if len(data) != header.file_size or hashlib.sha256(data).digest() != header.data_hash:
        raise RpcError(0, "the upload does not have the announced hash")
    return bytes(data)
