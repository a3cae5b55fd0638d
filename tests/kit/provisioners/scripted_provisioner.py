"""A provisioner daemon that the test scripts: the real protocol over a real WebSocket.

    async with connected_daemon(world) as daemon:
        job = await daemon.acquire()
        await daemon.update(job, logs=[line("Planning", "hello")])
        await daemon.complete_import(job, resources=[resource("box")])

`working_daemon` completes every job by itself; its `answers` hold what imports and builds report.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import trio

from coder.base.secret import Secret
from coder.coderd.store.provisioning.system_jobs import get_job
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.calls import CallStream
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2
from coder.rpc.session import Session, open_session
from tests.kit.server.server_in_process import World

SERVICE = "/provisionerd.ProvisionerDaemon/"


def line(stage: str, output: str, level: Any = provisioner_pb2.INFO, at: int = 1_795_232_665_586) -> Any:
    """One log line as a provisioner sends it."""
    return provisionerd_pb2.Log(
        source=provisionerd_pb2.PROVISIONER, level=level, created_at=at, stage=stage, output=output
    )


def resource(name: str, kind: str = "terraform_data", agents: Sequence[Any] = ()) -> provisioner_pb2.Resource:
    return provisioner_pb2.Resource(name=name, type=kind, agents=agents)


def agent(name: str = "main", token: str = "", **rest: Any) -> provisioner_pb2.Agent:
    return provisioner_pb2.Agent(
        name=name,
        token=token,
        operating_system="linux",
        architecture="amd64",
        connection_timeout_seconds=120,
        **rest,
    )


def tar(files: Mapping[str, str | bytes]) -> bytes:
    """An uncompressed archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@dataclass
class FakeDaemon:
    """One connection. Methods take the acquired job, whatever its kind."""

    session: Session

    async def call(self, name: str, request: Any, reply: Any = provisionerd_pb2.Empty) -> Any:
        return await self.session.call(SERVICE + name, request, reply)

    async def acquire(self) -> provisionerd_pb2.AcquiredJob:
        """Waits for a job."""
        async with self.acquiring() as stream:
            return await stream.receive()

    @contextlib.asynccontextmanager
    async def acquiring(
        self,
    ) -> AsyncIterator[CallStream[provisionerd_pb2.CancelAcquire, provisionerd_pb2.AcquiredJob]]:
        """The open stream of one request for work."""
        pb = provisionerd_pb2
        async with self.session.open_stream(
            f"{SERVICE}AcquireJobWithCancel", pb.CancelAcquire, pb.AcquiredJob
        ) as stream:
            yield stream

    async def update(self, job: Any, **fields: Any) -> provisionerd_pb2.UpdateJobResponse:
        request = provisionerd_pb2.UpdateJobRequest(job_id=job.job_id, **fields)
        return await self.session.call(f"{SERVICE}UpdateJob", request, provisionerd_pb2.UpdateJobResponse)

    async def fail(self, job: Any, error: str, **fields: Any) -> None:
        await self.call("FailJob", provisionerd_pb2.FailedJob(job_id=job.job_id, error=error, **fields))

    async def complete_import(self, job: Any, **fields: Any) -> None:
        result = provisionerd_pb2.CompletedJob.TemplateImport(**fields)
        await self.call("CompleteJob", provisionerd_pb2.CompletedJob(job_id=job.job_id, template_import=result))

    async def complete_dry_run(self, job: Any, **fields: Any) -> None:
        result = provisionerd_pb2.CompletedJob.TemplateDryRun(**fields)
        await self.call("CompleteJob", provisionerd_pb2.CompletedJob(job_id=job.job_id, template_dry_run=result))

    async def complete_build(self, job: Any, **fields: Any) -> None:
        result = provisionerd_pb2.CompletedJob.WorkspaceBuild(**fields)
        await self.call("CompleteJob", provisionerd_pb2.CompletedJob(job_id=job.job_id, workspace_build=result))


def serve_path(
    organization: str = "default",
    *,
    name: str | None = "fake",
    kinds: Sequence[str] = ("terraform", "echo"),
    tags: Mapping[str, str] | Sequence[str] = (),
    version: str = "1.18",
) -> str:
    query = [("version", version)]
    query += [("name", name)] if name is not None else []
    query += [("provisioner", kind) for kind in kinds]
    pairs = [f"{key}={value}" for key, value in tags.items()] if isinstance(tags, Mapping) else tags
    query += [("tag", pair) for pair in pairs]
    return f"/api/v2/organizations/{organization}/provisionerdaemons/serve?{urlencode(query)}"


@contextlib.asynccontextmanager
async def connected_daemon(
    world: World, *, token: str | None = None, headers: Mapping[str, str] = {}, **query: Any
) -> AsyncIterator[FakeDaemon]:
    """A daemon on the wire; `token` other than the logged-in user's, "" for none."""
    use = world.token if token is None else token
    policy = DialPolicy(world.url, token=Secret(use) if use else None)
    websocket = await connect_websocket(policy, serve_path(**query), headers=list(headers.items()))
    async with open_session(websocket, role="client") as session:
        yield FakeDaemon(session)


@dataclass
class Answers:
    """What a working daemon reports. Each is called with the acquired job; a build with `error` fails."""

    import_: Callable[[Any], Mapping[str, Any]] = field(
        default=lambda job: {"start_resources": [resource("box", agents=[agent()])]}
    )
    dry_run: Callable[[Any], Mapping[str, Any]] = field(default=lambda job: {"resources": [resource("box")]})
    build: Callable[[Any], Mapping[str, Any]] = field(default=lambda job: {"state": b"{}"})
    lines: Callable[[Any], Sequence[str]] = field(default=lambda job: ())
    "Further lines of the job's log."
    errors: Callable[[Any], Sequence[str]] = field(default=lambda job: ())
    "Lines of the job's log with the level of errors."
    seen: list[Any] = field(default_factory=list)


@contextlib.asynccontextmanager
async def working_daemon(world: World, answers: Answers | None = None, **query: Any) -> AsyncIterator[Answers]:
    """Finishes every job it gets, until the block ends."""
    chosen = answers or Answers()
    async with connected_daemon(world, **query) as daemon, trio.open_nursery() as nursery:
        nursery.start_soon(_work, daemon, chosen)
        yield chosen
        nursery.cancel_scope.cancel()


async def _work(daemon: FakeDaemon, answers: Answers) -> None:
    while True:
        job = await daemon.acquire()
        answers.seen.append(job)
        kind = job.WhichOneof("type")
        await daemon.update(job, logs=[line("Working", text) for text in (f"a {kind}", *answers.lines(job))])
        errors = [line("Working", text, provisioner_pb2.ERROR) for text in answers.errors(job)]
        if errors:
            await daemon.update(job, logs=errors)
        if kind == "template_import":
            await daemon.complete_import(job, **answers.import_(job))
        elif kind == "template_dry_run":
            await daemon.complete_dry_run(job, **answers.dry_run(job))
        else:
            found = answers.build(job)
            if "error" in found:
                await daemon.fail(job, found["error"], workspace_build=provisionerd_pb2.FailedJob.WorkspaceBuild())
            else:
                await daemon.complete_build(job, **found)


async def upload(world: World, files: Mapping[str, str | bytes], **rest: Any) -> str:
    """Uploads an archive; returns the file's id."""
    answer = await world.request(
        "POST", "/api/v2/files", content=tar(files), headers={"Content-Type": "application/x-tar"}, **rest
    )
    assert answer.status_code in {200, 201}, answer.text
    return str(answer.json()["hash"])


async def new_version(world: World, **body: Any) -> Any:
    """Creates a version of an empty template; returns its JSON."""
    if "file_id" not in body and "example_id" not in body:
        body["file_id"] = await upload(world, {"main.tf": ""})
    wanted = {"storage_method": "file", "provisioner": "echo", "tags": {}, **body}
    answer = await world.post(f"/api/v2/organizations/{world.organization_id}/templateversions", wanted)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def new_template(world: World, name: str = "tpl", **body: Any) -> Any:
    """A template of a fresh version; the import may still be waiting."""
    version = await new_version(world)
    wanted = {"name": name, "template_version_id": version["id"], **body}
    answer = await world.post(f"/api/v2/organizations/{world.organization_id}/templates", wanted)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def ended(world: World, path: str) -> Any:
    """Reads a version until its import ended."""
    while True:
        found = (await world.get(path)).json()
        job = found.get("job", found)
        if job["status"] not in {"pending", "running", "canceling"}:
            return found
        await job_ended(world, job["id"])


async def job_ended(world: World, job_id: str) -> None:
    """Waits for the end of a job. Asks the store: an answer of the API costs ten times as much, and takes that time
    from the job."""
    while True:
        job = await world.ctx.db.read(get_job, UUID(job_id))
        if job is None or job.completed_at is not None:
            return
        await trio.sleep(0.01)
