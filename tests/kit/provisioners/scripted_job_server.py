"""The server's side of the provisioner connection, scripted by the test: hands out jobs and records the replies."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio
import trio.testing

from coder.provisionerd.config import DaemonConfig, Shutdown
from coder.provisionerd.daemon import DRAIN, run_daemon
from coder.provisionerd.executors.contract import Executor
from coder.rpc.calls import Bidi, Handlers, ServerCall, ServerStream, Unary
from coder.rpc.errors import RpcError
from coder.rpc.proto import overlay_pb2
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.session import Session, open_session

_SERVICE = "/provisionerd.ProvisionerDaemon/"


@dataclass
class FakeServer:
    """Answers of the server are attributes; what arrived is in the lists."""

    updates: list[pd.UpdateJobRequest] = field(default_factory=list)
    ended: list[pd.CompletedJob | pd.FailedJob] = field(default_factory=list)
    quota_asked: list[int] = field(default_factory=list)
    uploads: list[bytes] = field(default_factory=list)
    variable_values: list[pb.VariableValue] = field(default_factory=list)
    quota: pd.CommitQuotaResponse = field(default_factory=lambda: pd.CommitQuotaResponse(ok=True, budget=-1))
    update_error: str = ""
    canceled: bool = False
    connections: int = 0
    drained: int = 0
    module_files: bytes = b""

    def __post_init__(self) -> None:
        self._jobs, self._waiting = trio.open_memory_channel[pd.AcquiredJob](100)
        self._changed = trio.Event()
        self._scopes: list[trio.CancelScope] = []
        self.reachable = True
        self.silent = False
        "The network between is gone: nothing arrives, nobody is told."

    # --- for tests
    def post(self, job: pd.AcquiredJob) -> None:
        self._jobs.send_nowait(job)

    async def wait_for(self, condition: Any) -> None:
        while not condition():
            await self._changed.wait()

    async def wait_ended(self, count: int = 1) -> pd.CompletedJob | pd.FailedJob:
        await self.wait_for(lambda: len(self.ended) >= count)
        return self.ended[count - 1]

    def lines(self) -> list[tuple[int, int, str, str]]:
        """(source, level, stage, output) of every log line so far."""
        return [(log.source, log.level, log.stage, log.output) for update in self.updates for log in update.logs]

    def outputs(self, stage: str) -> list[str]:
        return [output for _, _, found, output in self.lines() if found == stage and output]

    def disconnect(self) -> None:
        for scope in self._scopes:
            scope.cancel()

    def _note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # --- the link
    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Session]:
        if not self.reachable:
            raise OSError("connection refused")
        self.connections += 1
        ours, theirs = trio.testing.memory_stream_pair()
        deliver = theirs.send_stream.send_all_hook
        assert deliver is not None

        async def deliver_unless_silent() -> None:
            while self.silent:
                await self._changed.wait()
            await deliver()

        theirs.send_stream.send_all_hook = deliver_unless_silent
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._serve, ours)
            async with open_session(theirs, role="client") as session:
                yield session
            nursery.cancel_scope.cancel()

    async def _serve(self, stream: trio.abc.Stream) -> None:
        with trio.CancelScope() as scope:
            self._scopes.append(scope)
            async with open_session(stream, role="server") as session:
                await session.serve(self._handlers())

    async def _drain(self, _request: overlay_pb2.DrainRequest) -> overlay_pb2.DrainResponse:
        self.drained += 1
        self._note()
        await trio.lowlevel.checkpoint()
        return overlay_pb2.DrainResponse()

    def _handlers(self) -> Handlers:
        return {
            _SERVICE + "AcquireJobWithCancel": Bidi(self._acquire, pd.CancelAcquire),
            DRAIN: Unary(self._drain, overlay_pb2.DrainRequest),
            _SERVICE + "UpdateJob": Unary(self._update, pd.UpdateJobRequest),
            _SERVICE + "CommitQuota": Unary(self._commit_quota, pd.CommitQuotaRequest),
            _SERVICE + "FailJob": Unary(self._end, pd.FailedJob),
            _SERVICE + "CompleteJob": Unary(self._end, pd.CompletedJob),
            _SERVICE + "UploadFile": Bidi(self._upload, pb.FileUpload),
            _SERVICE + "DownloadFile": ServerStream(self._download, pd.FileRequest),
        }

    async def _acquire(self, call: ServerCall[Any, Any]) -> None:
        job = pd.AcquiredJob()
        async with trio.open_nursery() as nursery:

            async def stop_on_cancel() -> None:
                await call.receive()
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop_on_cancel)
            job = await self._waiting.receive()
            nursery.cancel_scope.cancel()
        await call.send(job)
        await call.close()

    async def _update(self, request: pd.UpdateJobRequest) -> pd.UpdateJobResponse:
        self.updates.append(request)
        self._note()
        if self.update_error and (request.template_variables or not request.logs):
            raise RpcError(0, self.update_error)
        values = self.variable_values if request.template_variables else []
        return pd.UpdateJobResponse(canceled=self.canceled, variable_values=values)

    async def _commit_quota(self, request: pd.CommitQuotaRequest) -> pd.CommitQuotaResponse:
        self.quota_asked.append(request.daily_cost)
        return self.quota

    async def _end(self, request: pd.CompletedJob | pd.FailedJob) -> pd.Empty:
        self.ended.append(request)
        self._note()
        return pd.Empty()

    async def _upload(self, call: ServerCall[Any, Any]) -> None:
        data = b"".join([part.chunk_piece.data async for part in call])
        self.uploads.append(data)
        await call.send(pd.Empty())
        await call.close()

    async def _download(self, request: pd.FileRequest, send: Any) -> None:
        await send(pb.FileUpload(data_upload=pb.DataUpload(file_size=len(self.module_files), chunks=1)))
        await send(pb.FileUpload(chunk_piece=pb.ChunkPiece(data=self.module_files)))


@asynccontextmanager
async def running_daemon(
    server: FakeServer, config: DaemonConfig, executors: Mapping[str, Executor], shutdown: Shutdown | None = None
) -> AsyncIterator[trio.CancelScope]:
    """A daemon connected to `server` for the length of the block."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_daemon, server.connect, config, executors, shutdown)
        yield nursery.cancel_scope
        nursery.cancel_scope.cancel()


def tar_of(files: Mapping[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def echo_archive(**steps: list[Any]) -> bytes:
    """A template for the echo executor: `plan=[log, complete]`, `start_plan=[...]` for one transition."""
    files: dict[str, bytes] = {}
    kinds = {
        pb.Log: "log",
        pb.ParseComplete: "parse",
        pb.InitComplete: "init",
        pb.PlanComplete: "plan",
        pb.ApplyComplete: "apply",
        pb.GraphComplete: "graph",
    }
    defaults: dict[str, list[Any]] = {
        "parse": [pb.ParseComplete()],
        "init": [pb.InitComplete()],
        "plan": [pb.PlanComplete(plan=b"{}")],
        "apply": [pb.ApplyComplete()],
        "graph": [pb.GraphComplete()],
    }
    for step, answers in {**defaults, **steps}.items():
        for index, answer in enumerate(answers):
            response = pb.Response(**{kinds[type(answer)]: answer})
            files[f"{index}.{step.replace('_', '.')}.protobuf"] = response.SerializeToString()
    return tar_of(files)
