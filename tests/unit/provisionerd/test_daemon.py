"""The daemon and its jobs, with the echo executor and a server played by the test. No terraform here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.base.errors import CoderError
from coder.net.errors import HttpError
from coder.provisionerd.config import DaemonConfig, Shutdown
from coder.provisionerd.daemon import run_daemon
from coder.provisionerd.executors.contract import Settings
from coder.provisionerd.executors.echo import EchoExecutor
from coder.provisionerd.final_report import decode
from coder.provisionerd.run import run_job
from coder.provisionerd.workdir import job_directory
from coder.rpc import calls, drpc
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.proto.provisionerd_pb2 import FailedJob
from tests.kit.provisioners.scripted_job_server import FakeServer, echo_archive, running_daemon, tar_of

ECHO = {"echo": EchoExecutor()}


@pytest.fixture
def config(tmp_path: Path) -> DaemonConfig:
    return DaemonConfig(name="d", work_dir=tmp_path / "work")


def _import(archive: bytes, **fields: Any) -> pd.AcquiredJob:
    return pd.AcquiredJob(
        job_id="job",
        provisioner="echo",
        template_source_archive=archive,
        template_import=pd.AcquiredJob.TemplateImport(metadata=pb.Metadata(coder_url="http://c"), **fields),
    )


def _build(
    archive: bytes, transition: pb.WorkspaceTransition.ValueType = pb.WorkspaceTransition.START, **fields: Any
) -> pd.AcquiredJob:
    metadata = pb.Metadata(workspace_transition=transition, workspace_id="w")
    return pd.AcquiredJob(
        job_id="job",
        provisioner="echo",
        template_source_archive=archive,
        workspace_build=pd.AcquiredJob.WorkspaceBuild(metadata=metadata, **fields),
    )


def _log(text: str) -> pb.Log:
    return pb.Log(level=pb.LogLevel.INFO, output=text)


async def _outcome(server: FakeServer, config: DaemonConfig, job: pd.AcquiredJob) -> Any:
    server.post(job)
    async with running_daemon(server, config, ECHO):
        return await server.wait_ended()


async def test_import(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer(variable_values=[pb.VariableValue(name="v", value="x")])
    archive = echo_archive(
        init=[_log("init"), pb.InitComplete(modules=[pb.Module(key="m")])],
        parse=[pb.ParseComplete(template_variables=[pb.TemplateVariable(name="v")], workspace_tags={"a": "b"})],
        plan=[_log("plan"), pb.PlanComplete(plan=b"{}")],
        start_graph=[
            pb.GraphComplete(
                resources=[pb.Resource(name="r"), pb.Resource(name="e")],
                parameters=[pb.RichParameter(name="p")],
                external_auth_providers=[pb.ExternalAuthProviderResource(id="gh")],
                presets=[pb.Preset(name="s")],
                ai_tasks=[pb.AITask(id="t")],
                has_external_agents=True,
            )
        ],
        stop_graph=[pb.GraphComplete(resources=[pb.Resource(name="r")])],
    )
    done = (await _outcome(server, config, _import(archive))).template_import
    assert [one.name for one in done.start_resources] == ["r", "e"]
    assert [one.name for one in done.stop_resources] == ["r"]
    assert [one.name for one in done.rich_parameters] == ["p"]
    assert list(done.external_auth_providers_names) == ["gh"]
    assert (done.plan, done.has_ai_tasks, done.has_external_agents) == (b"{}", True, True)
    assert [one.key for one in done.start_modules] == ["m"]
    variables = next(update for update in server.updates if update.template_variables)
    assert dict(variables.workspace_tags) == {"a": "b"}
    assert server.lines() == [
        (0, 2, "Setting up", ""),
        (1, 2, "Initializing Terraform Directory", "init"),
        (0, 2, "Parsing template parameters", ""),
        (0, 2, "Detecting persistent resources", ""),
        (1, 2, "Detecting persistent resources", "plan"),
        (0, 2, "Detecting ephemeral resources", ""),
        (1, 2, "Detecting ephemeral resources", "plan"),
        (0, 2, "Cleaning Up", ""),
    ]
    assert list(config.work_dir.iterdir()) == []


async def test_dry_run(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    archive = echo_archive(graph=[pb.GraphComplete(resources=[pb.Resource(name="r")])])
    job = pd.AcquiredJob(
        job_id="job",
        provisioner="echo",
        template_source_archive=archive,
        template_dry_run=pd.AcquiredJob.TemplateDryRun(),
    )
    done = await _outcome(FakeServer(), config, job)
    assert [one.name for one in done.template_dry_run.resources] == ["r"]


async def test_build_commits_quota(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer(quota=pd.CommitQuotaResponse(ok=True, credits_consumed=7, budget=10))
    archive = echo_archive(
        plan=[pb.PlanComplete(dailyCost=4, resource_replacements=[pb.ResourceReplacement(resource="x")])],
        apply=[_log("made"), pb.ApplyComplete(state=b"new")],
        graph=[pb.GraphComplete(resources=[pb.Resource(name="vm")])],
    )
    done = (await _outcome(server, config, _build(archive, state=b"old"))).workspace_build
    assert done.state == b"new"
    assert [one.resource for one in done.resource_replacements] == ["x"]
    assert server.quota_asked == [4]
    assert server.outputs("Commit quota") == [
        "Build cost       —   4",
        "Budget           —   10",
        "Credits consumed —   7",
    ]
    assert server.outputs("Starting workspace") == ["made"]


@pytest.mark.parametrize(
    ("steps", "error", "code"),
    [
        ({"init": [pb.InitComplete(error="E")]}, "template import init error: E", ""),
        ({"parse": [pb.ParseComplete(error="E")]}, "run parse: parse error: E", ""),
        (
            {"start_plan": [pb.PlanComplete(error="E")]},
            "template import provision for start: plan during template import provision error: E",
            "",
        ),
        (
            {"stop_graph": [pb.GraphComplete(error="missing parameter")]},
            "template import provision for stop: graph during template import provision error: missing parameter",
            "MISSING_TEMPLATE_PARAMETER",
        ),
        (
            {"plan": [pb.PlanComplete(ai_task_count=2)]},
            "only one 'coder_ai_task' resource can be provisioned per template, found 2",
            "",
        ),
    ],
)
async def test_failed_import(
    autojump_clock: trio.abc.Clock, config: DaemonConfig, steps: dict[str, Any], error: str, code: str
) -> None:
    failed = await _outcome(FakeServer(), config, _import(echo_archive(**steps)))
    assert (failed.error, failed.error_code, failed.WhichOneof("type")) == (error, code, None)


async def test_missing_variables(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer(update_error="required template variables need values: a")
    archive = echo_archive(parse=[pb.ParseComplete(template_variables=[pb.TemplateVariable(name="a")])])
    failed = await _outcome(server, config, _import(archive))
    assert isinstance(failed, FailedJob) and failed.error == "update job: required template variables need values: a"
    assert isinstance(failed, FailedJob) and failed.error_code == "REQUIRED_TEMPLATE_VARIABLES"


@pytest.mark.parametrize(
    ("steps", "error", "state"),
    [
        ({"init": [pb.InitComplete(error="E")]}, "E", b"old"),
        ({"plan": [pb.PlanComplete(error="E")]}, "E", b""),
        ({"apply": [pb.ApplyComplete(error="E", state=b'{"half": true}')]}, "E", b'{"half": true}'),
        ({"apply": [pb.ApplyComplete(state=b"new")], "graph": [pb.GraphComplete(error="E")]}, "E", b"new"),
    ],
)
async def test_failed_build_keeps_state(
    autojump_clock: trio.abc.Clock, config: DaemonConfig, steps: dict[str, Any], error: str, state: bytes
) -> None:
    failed = await _outcome(FakeServer(), config, _build(echo_archive(**steps), state=b"old"))
    assert (failed.error, failed.workspace_build.state) == (error, state)


async def test_refused_quota(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer(quota=pd.CommitQuotaResponse(ok=False))
    failed = await _outcome(server, config, _build(echo_archive(plan=[pb.PlanComplete(dailyCost=9)])))
    assert (failed.error, failed.error_code) == ("insufficient quota", "INSUFFICIENT_QUOTA")
    assert server.outputs("Commit quota")[-1] == "This build would exceed your quota. Failing."


async def test_hostile_archives(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    failed = await _outcome(FakeServer(), config, _import(tar_of({"../../evil": "x"})))
    assert "outside of itself" in failed.error
    assert not (config.work_dir.parent / "evil").exists()


async def test_unknown_provisioner(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    job = _import(echo_archive())
    job.provisioner = "other"
    failed = await _outcome(FakeServer(), config, job)
    assert isinstance(failed, FailedJob) and failed.error == "this provisioner has no executor for 'other'"


async def test_heartbeats_and_cancel(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer()
    server.post(_build(echo_archive(apply=[_log("working")])))
    async with running_daemon(server, config, ECHO):
        await server.wait_for(lambda: "working" in server.outputs("Starting workspace"))
        before = len(server.updates)
        await trio.sleep(21)
        assert len(server.updates) - before == 4  # one every five seconds
        server.canceled = True
        failed = await server.wait_ended()
    assert isinstance(failed, FailedJob) and failed.error == "canceled"


class _UncancellableExecutor:
    """Executor whose sessions ignore a cancel."""

    @asynccontextmanager
    async def open(self, settings: Settings) -> AsyncIterator[Any]:
        async with EchoExecutor().open(settings) as session:
            session.cancel = lambda: None  # type: ignore[method-assign]
            yield session


async def test_executor_that_ignores_a_cancel(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer()
    server.post(_build(echo_archive(apply=[_log("working")])))
    server.post(_build(echo_archive()))
    async with running_daemon(server, config, {"echo": _UncancellableExecutor()}):
        await server.wait_for(lambda: "working" in server.outputs("Starting workspace"))
        started, server.canceled = trio.current_time(), True
        failed = await server.wait_ended()
        waited, server.canceled = trio.current_time() - started, False
        assert isinstance(await server.wait_ended(2), pd.CompletedJob)  # the daemon continues
    assert isinstance(failed, FailedJob) and failed.error == "Cancel timed out"
    assert waited >= config.force_cancel


async def test_job_survives_server_restart(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer()
    server.post(_build(echo_archive(apply=[_log("working")])))
    async with running_daemon(server, config, ECHO):
        await server.wait_for(lambda: "working" in server.outputs("Starting workspace"))
        server.reachable = False
        server.disconnect()
        await trio.sleep(60)
        server.reachable = True
        server.canceled = True  # ends the job, through a heartbeat over the new connection
        failed = await server.wait_ended()
    assert isinstance(failed, FailedJob) and failed.error == "canceled"
    assert server.connections == 2


async def test_job_survives_database_outage(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    """Heartbeats, the quota and the final report are repeated; the executor is not interrupted."""
    server = FakeServer()
    server.post(_build(echo_archive(apply=[_log("working"), pb.ApplyComplete(state=b"new")])))
    server.database_away = True
    async with running_daemon(server, config, ECHO):
        await trio.sleep(400)
        assert not server.ended
        server.database_away = False
        completed = await server.wait_ended()
        await trio.sleep(1)
    assert isinstance(completed, pd.CompletedJob) and completed.workspace_build.state == b"new"
    assert "working" in server.outputs("Starting workspace")
    assert len(server.ended) == 1 and list(config.work_dir.iterdir()) == []


async def test_unaccepted_end_is_kept(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    """A daemon that stops during an outage leaves the report to the next daemon of its name."""
    server = FakeServer()
    server.post(_build(echo_archive(apply=[_log("done"), pb.ApplyComplete(state=b"new")])))
    async with running_daemon(server, config, ECHO) as scope:
        await server.wait_for(lambda: "done" in server.outputs("Starting workspace"))
        server.database_away = True
        await trio.sleep(60)
        scope.cancel()
    assert not server.ended and len(list(config.work_dir.iterdir())) == 1
    server.database_away = False
    async with running_daemon(server, config, ECHO):
        completed = await server.wait_ended()
        await trio.sleep(1)
    assert isinstance(completed, pd.CompletedJob) and completed.workspace_build.state == b"new"
    assert list(config.work_dir.iterdir()) == []


@pytest.mark.parametrize(("error", "kept"), [("internal error", 1), ("job already completed", 0), ("no such job", 0)])
async def test_rejected_leftover(autojump_clock: trio.abc.Clock, config: DaemonConfig, error: str, kept: int) -> None:
    folder = config.work_dir / "job-1"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    (folder / "job.json").write_text(json.dumps({"job_id": "1", "kind": "workspace_build", "daemon": config.name}))
    server = FakeServer(end_error=error)
    async with running_daemon(server, config, ECHO):
        await server.wait_for(lambda: server.rejected)
        await trio.testing.wait_all_tasks_blocked()
    assert len(list(config.work_dir.iterdir())) == kept


async def test_refused_update_fails_the_job(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer(update_error="no more of this")
    server.post(_build(echo_archive(apply=[_log("working")])))
    async with running_daemon(server, config, ECHO):
        failed = await server.wait_ended()
    assert isinstance(failed, FailedJob) and failed.error == "send periodic update: no more of this"


async def test_drain_waits_for_the_job(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server, shutdown = FakeServer(), Shutdown()
    server.post(_build(echo_archive(apply=[_log("working")])))
    server.post(_build(echo_archive()))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_daemon, server.connect, config, ECHO, shutdown)
        await server.wait_for(lambda: "working" in server.outputs("Starting workspace"))
        shutdown.drain()
        await trio.sleep(30)
        assert server.ended == [] and server.drained == 1
        server.disconnect()
        await server.wait_for(lambda: server.drained == 2)  # the next connection announces it, too
        shutdown.cancel_job()
    assert [one.error for one in server.ended if isinstance(one, pd.FailedJob)] == ["canceled"]
    assert len(server.ended) == 1  # the second job was left for other daemons


async def test_idle_daemon_drains_at_once(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server, shutdown = FakeServer(), Shutdown()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_daemon, server.connect, config, ECHO, shutdown)
        await trio.sleep(1)
        shutdown.drain()


async def test_killed_daemon_fails_its_job(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer()
    server.post(_build(echo_archive(apply=[_log("working")]), state=b"old"))
    async with running_daemon(server, config, ECHO) as scope:
        await server.wait_for(lambda: "working" in server.outputs("Starting workspace"))
        scope.cancel()
    assert isinstance(server.ended[0], pd.FailedJob)
    assert server.ended[0].error == "provisioner daemon was shutdown gracefully"
    assert server.ended[0].workspace_build.state == b"old"
    assert list(config.work_dir.iterdir()) == []


async def test_refused_daemon_ends(config: DaemonConfig) -> None:
    def connect() -> Any:
        raise HttpError(403, "not you")

    with pytest.raises(HttpError, match="not you"):
        await run_daemon(connect, config, ECHO)


async def test_accepted_daemon_ignores_proxy_pages(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer()
    refusals = [HttpError(404, "<html>"), HttpError(403, "<html>"), HttpError(403, "not you", is_enveloped=True)]

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        if server.connections:
            raise refusals.pop(0)
        async with server.connect() as session:
            nursery.start_soon(cut)
            yield session

    async def cut() -> None:
        await trio.testing.wait_all_tasks_blocked()
        server.disconnect()

    async with trio.open_nursery() as nursery:
        with pytest.raises(HttpError, match="not you"):
            await run_daemon(connect, config, ECHO)
    assert refusals == []


async def test_module_files(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer()
    archive = echo_archive(init=[pb.InitComplete(module_files=b"m" * 1000)])
    done = await _outcome(server, config, _import(archive))
    assert done.template_import.module_files == b"m" * 1000
    assert server.uploads == []


async def test_too_many_lines_are_not_sent(
    autojump_clock: trio.abc.Clock, config: DaemonConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LARGE_REQUEST", drpc.MAX_PACKET + 1)  # a jumping clock does not wait for threads
    server = FakeServer()
    lines = [_log("x" * 30_000)] * 100
    await _outcome(server, config, _build(echo_archive(apply=[*lines, pb.ApplyComplete()])))
    sent = sum(len(line[3]) for line in server.lines())
    assert 1 << 20 < sent < 1_300_000


async def test_killed_predecessor(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    def abandoned(name: str, daemon: str) -> Path:
        folder = config.work_dir / name
        (folder / "template").mkdir(parents=True)
        (folder / "lock").touch()
        (folder / "job.json").write_text(json.dumps({"job_id": name, "kind": "workspace_build", "daemon": daemon}))
        (folder / "template" / "terraform.tfstate").write_bytes(b'{"half": true}')
        return folder

    abandoned("job-1", config.name)
    kept = abandoned("job-2", "another daemon")
    server = FakeServer()
    with job_directory(config.work_dir, job_id="held", kind="workspace_build", daemon=config.name) as held:
        async with running_daemon(server, config, ECHO):
            failed = await server.wait_ended()
            await trio.sleep(1)
        assert len(server.ended) == 1
        assert sorted(config.work_dir.iterdir()) == sorted([kept, held.path])
    assert failed.job_id == "job-1"
    assert isinstance(failed, FailedJob) and failed.error == "provisioner was killed while it worked on the job"
    assert failed.workspace_build.state == b'{"half": true}'


def test_full_disk(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(CoderError, match="cannot create a job directory"), job_directory(blocked / "below"):
        pass


async def test_drain_without_an_answer(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    class Silent(FakeServer):
        async def _acquire(self, call: Any) -> None:
            await trio.sleep_forever()

    server, shutdown = Silent(), Shutdown()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_daemon, server.connect, config, ECHO, shutdown)
        await trio.sleep(1)
        shutdown.drain()


class _BigExecutor:
    """Executor whose applies end with a state that exceeds the message limit."""

    @asynccontextmanager
    async def open(self, settings: Settings) -> AsyncIterator[Any]:
        async with EchoExecutor().open(settings) as session:

            async def apply(*_arguments: Any) -> pb.ApplyComplete:
                return pb.ApplyComplete(state=b"s" * (5 << 20))

            session.apply = apply  # type: ignore[assignment, method-assign]
            session.state = lambda: b"s" * (5 << 20)  # type: ignore[method-assign]
            yield session


async def test_result_too_big_for_a_message(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    server = FakeServer()
    server.post(_build(echo_archive()))
    async with running_daemon(server, config, {"echo": _BigExecutor()}):
        failed = await server.wait_ended()
    assert isinstance(failed, pd.FailedJob)
    assert isinstance(failed, FailedJob) and failed.error.startswith("complete job: payload was too big")


class _AwayLink:
    """Server that is away while the first batch of lines is in flight."""

    is_connected = True

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.ended: list[str] = []

    async def call(self, method: str, request: Any, reply: type[Any], *, final: bool = False) -> Any:
        if method == "UpdateJob":
            if not self.heard and request.logs:
                await trio.sleep(60)
            self.heard += [line.output for line in request.logs if line.output]
        elif final:
            self.ended.append(method)
        return reply()


async def test_final_lines_arrive_once(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    many = [_log(f"line {number}") for number in range(150)]
    link = _AwayLink()
    job = _build(echo_archive(plan=[*many, pb.PlanComplete()], apply=[_log("made"), pb.ApplyComplete()]))
    await run_job(job, ECHO, link, config, Shutdown())  # type: ignore[arg-type]
    assert [text for text in link.heard if text.startswith("line")] == [f"line {number}" for number in range(150)]
    assert link.heard.count("made") == 1
    assert link.ended == ["CompleteJob"]


class _StuckLink:
    """Server that never answers the last lines."""

    is_connected = False

    def __init__(self) -> None:
        self.stuck = trio.Event()

    async def call(self, method: str, request: Any, reply: type[Any], *, final: bool = False) -> Any:
        if final or any(line.output == "made" for line in getattr(request, "logs", ())):
            self.stuck.set()
            await trio.sleep_forever()
        return reply()


async def test_stop_keeps_result_of_ended_work(autojump_clock: trio.abc.Clock, config: DaemonConfig) -> None:
    """The next daemon reports it."""
    link: Any = _StuckLink()
    job = _build(echo_archive(apply=[_log("made"), pb.ApplyComplete(state=b"new")]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_job, job, ECHO, link, config, Shutdown())
        await link.stuck.wait()
        await trio.sleep(1)  # the work has ended
        nursery.cancel_scope.cancel()
    (folder,) = config.work_dir.iterdir()
    report = decode((folder / "report.protobuf").read_bytes())
    assert isinstance(report, pd.CompletedJob) and report.workspace_build.state == b"new"
