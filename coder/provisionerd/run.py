"""One job from acquisition to its final report: import, dry-run or build (docs/protocol/provisioners.md#jobs).

The three kinds are sequences of the same steps; what a failing step says is in the tables below. How a step is done
is the executor's business, how reports travel the link's.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import trio

from coder.base.duration import format_duration
from coder.base.errors import CoderError, explain_error
from coder.base.log import get_logger
from coder.provisionerd.config import DaemonConfig, Shutdown
from coder.provisionerd.executors.contract import Executor, ExecutorSession, Settings
from coder.provisionerd.link import MAX_MESSAGE, Link
from coder.provisionerd.redact import job_secrets, sensitive_values
from coder.provisionerd.report import Reporter
from coder.provisionerd.workdir import job_directory, leftovers
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd

_log = get_logger("provisionerd.run")

SETTING_UP = "Setting up"
INITIALIZING = "Initializing Terraform Directory"
PARSING = "Parsing template parameters"
PERSISTENT = "Detecting persistent resources"
EPHEMERAL = "Detecting ephemeral resources"
PLANNING = "Planning Infrastructure"
QUOTA = "Commit quota"
GRAPHING = "Graphing Infrastructure"
CLEANING_UP = "Cleaning Up"
APPLY_STAGE = {
    pb.WorkspaceTransition.START: "Starting workspace",
    pb.WorkspaceTransition.STOP: "Stopping workspace",
    pb.WorkspaceTransition.DESTROY: "Destroying workspace",
}

ERROR_CODES = {
    "missing parameter": "MISSING_TEMPLATE_PARAMETER",
    "required template variables": "REQUIRED_TEMPLATE_VARIABLES",
    "insufficient quota": "INSUFFICIENT_QUOTA",
}
"What an error text holds -> the code clients act on (docs/protocol/provisioners.md#failures)."

_SHUT_DOWN = "provisioner daemon was shutdown gracefully"
_KILLED = "provisioner daemon was killed while it worked on the job"
_CANCEL_TIMED_OUT = "Cancel timed out"
_LAST_WORDS = 5.0
"Seconds for the final report of a daemon that is being stopped the hard way."

Complete = TypeVar("Complete")


class JobFailed(CoderError):  # noqa: N818 - how a job ends more than a mistake
    """The job ends with this text. `build` is what a workspace build keeps nevertheless."""

    def __init__(self, text: str, build: pd.FailedJob.WorkspaceBuild | None = None) -> None:
        super().__init__("job_failed", text)
        self.build = build


@dataclass(slots=True)
class _Job:
    acquired: pd.AcquiredJob
    session: ExecutorSession
    report: Reporter
    link: Link
    timings: list[pb.Timing] = field(default_factory=list)


async def run_job(
    acquired: pd.AcquiredJob,
    executors: Mapping[str, Executor],
    link: Link,
    config: DaemonConfig,
    shutdown: Shutdown,
) -> bool:
    """Works on a job and reports how it ended: did it succeed? Raises only if cancelled from outside; that is reported
    too.
    """
    log = _log.bind(job=acquired.job_id, daemon=config.name)
    log.info("a job starts", kind=acquired.WhichOneof("type"), provisioner=acquired.provisioner)
    report = Reporter(link, acquired.job_id, config)
    report.secrets.add(job_secrets(acquired))
    report.stage(SETTING_UP)
    run = _Run(acquired, executors, link, config, shutdown, report)
    outcome: pd.CompletedJob | pd.FailedJob | None = None
    try:
        outcome = await run.work()
    finally:
        if outcome is None:
            # Cancelled. With the server gone too there is nobody to tell; its reaper ends the job.
            with trio.move_on_after(_LAST_WORDS if link.is_connected else 0, shield=True):
                await run.deliver(run.failed(JobFailed(_SHUT_DOWN)))
    await run.deliver(outcome)
    log.info("a job ended", error=outcome.error if isinstance(outcome, pd.FailedJob) else "")
    return not isinstance(outcome, pd.FailedJob)


async def report_leftovers(link: Link, config: DaemonConfig) -> None:
    """Ends the jobs this daemon was killed in, so that nobody waits for the reaper and no state is lost."""
    for leftover in await trio.to_thread.run_sync(leftovers, config.work_dir, config.name):
        failed = pd.FailedJob(job_id=leftover.job_id, error=_KILLED)
        if leftover.kind == "workspace_build":
            failed.workspace_build.state = leftover.state
        try:
            await link.call("FailJob", failed, pd.Empty)
            _log.warn("a job was lost when this daemon was killed", job=leftover.job_id, daemon=config.name)
        except RpcError as problem:
            _log.info("a lost job had already ended", job=leftover.job_id, reason=problem.text)
        leftover.remove()


class _Run:
    """The job and everything around its work: heartbeats, cancellation, the final report."""

    def __init__(
        self,
        acquired: pd.AcquiredJob,
        executors: Mapping[str, Executor],
        link: Link,
        config: DaemonConfig,
        shutdown: Shutdown,
        report: Reporter,
    ) -> None:
        self._acquired = acquired
        self._executors = executors
        self._link = link
        self._config = config
        self._shutdown = shutdown
        self._report = report
        self._last_state = b""
        self._completed: pd.CompletedJob | None = None
        self._problem: JobFailed | None = None
        self._timed_out = False

    async def work(self) -> pd.CompletedJob | pd.FailedJob:
        async with trio.open_nursery() as reporting:
            reporting.start_soon(self._heartbeat, reporting.cancel_scope)
            async with trio.open_nursery() as nursery:
                await self._attempt(nursery)
                nursery.cancel_scope.cancel()
            self._report.finish()
        if self._problem is None and self._completed is not None:
            return self._completed
        problem = self._problem or JobFailed("internal error: the job ended without a result")
        if self._timed_out:
            problem = JobFailed(f"{self._late()}: {problem.message}", problem.build)
        return self.failed(problem)

    async def _heartbeat(self, scope: trio.CancelScope) -> None:
        try:
            await self._report.run()
        except RpcError as problem:
            self._problem = JobFailed(f"send periodic update: {problem.text}")
            scope.cancel()

    async def _attempt(self, nursery: trio.Nursery) -> None:
        try:
            job_id, kind = self._acquired.job_id, _kind(self._acquired)
            with job_directory(self._config.work_dir, job_id=job_id, kind=kind, daemon=self._config.name) as folder:
                executor = self._executors.get(self._acquired.provisioner)
                if executor is None:
                    raise JobFailed(f"this daemon has no executor for provisioner {self._acquired.provisioner!r}")
                settings = Settings(folder, *_settings(self._acquired))
                async with executor.open(settings) as session:
                    nursery.start_soon(self._watch_cancel, session, nursery.cancel_scope)
                    nursery.start_soon(self._watch_time, session, nursery.cancel_scope)
                    try:
                        job = _Job(self._acquired, session, self._report, self._link)
                        self._completed = await _KINDS[_kind(self._acquired)](job)
                    finally:
                        self._last_state = session.state()
        except JobFailed as problem:
            self._problem = problem
        except CoderError as problem:
            self._problem = JobFailed(f"open session: {explain_error(problem)}")
        except Exception as problem:
            # One bad template must not take the daemon along.
            _log.error("a job crashed", job=self._acquired.job_id, error=problem)
            self._problem = JobFailed(f"internal error: {type(problem).__name__}: {problem}")

    async def _watch_cancel(self, session: ExecutorSession, scope: trio.CancelScope) -> None:
        async with trio.open_nursery() as nursery:

            async def until(wait: Callable[[], Awaitable[None]]) -> None:
                await wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(until, self._report.canceled.wait)
            nursery.start_soon(until, self._shutdown.wait_canceling)
        session.cancel()
        await trio.sleep(self._config.force_cancel)
        self._problem = JobFailed(_CANCEL_TIMED_OUT)
        scope.cancel()

    async def _watch_time(self, session: ExecutorSession, scope: trio.CancelScope) -> None:
        """A job that takes for ever is interrupted like a canceled one, and killed when it ignores that."""
        if not self._config.job_timeout:
            return
        await trio.sleep(self._config.job_timeout)
        self._timed_out = True
        self._report.stage(CLEANING_UP, mark=False)(pb.LogLevel.ERROR, f"{self._late()}: interrupting it")
        session.cancel()
        await trio.sleep(self._config.exit_timeout)
        self._problem = JobFailed("it ignored the interrupt and was killed")
        scope.cancel()

    def _late(self) -> str:
        return f"the job took longer than {format_duration(timedelta(seconds=self._config.job_timeout))}"

    def failed(self, problem: JobFailed) -> pd.FailedJob:
        text = self._report.secrets.clean(problem.message)
        code = next((code for part, code in ERROR_CODES.items() if part in text), "")
        failed = pd.FailedJob(job_id=self._acquired.job_id, error=text, error_code=code)
        if _kind(self._acquired) == "workspace_build":
            build = problem.build or pd.FailedJob.WorkspaceBuild(state=self._last_state)
            failed.workspace_build.CopyFrom(build)
        return failed

    async def deliver(self, outcome: pd.CompletedJob | pd.FailedJob) -> None:
        self._report.stage(CLEANING_UP)
        try:
            await self._report.flush()
            if isinstance(outcome, pd.CompletedJob):
                await self._complete(outcome)
            else:
                await self._link.call("FailJob", outcome, pd.Empty, final=True)
        except RpcError as problem:
            # The server decided about this job without us; there is nobody left to tell.
            _log.warn("the server refused the end of a job", job=self._acquired.job_id, error=problem.text)

    async def _complete(self, completed: pd.CompletedJob) -> None:
        modules = completed.template_import.module_files
        if modules and completed.ByteSize() > MAX_MESSAGE:
            digest = hashlib.sha256(modules).digest()
            try:
                await self._link.upload(modules, digest)
                completed.template_import.module_files_hash = digest
            except (RpcError, RpcClosed, trio.TooSlowError, trio.EndOfChannel) as problem:
                _log.warn("module files were not kept", job=self._acquired.job_id, error=problem)
            completed.template_import.module_files = b""
        try:
            await self._link.call("CompleteJob", completed, pd.Empty, final=True)
        except RpcError as problem:
            # E.g. a result too big for one message: the job must still end, and say why.
            failed = self.failed(JobFailed(f"complete job: {problem.text}"))
            if failed.ByteSize() > MAX_MESSAGE:
                failed.workspace_build.ClearField("state")
            await self._link.call("FailJob", failed, pd.Empty, final=True)


def _kind(acquired: pd.AcquiredJob) -> str:
    return acquired.WhichOneof("type") or "template_dry_run"


def _settings(acquired: pd.AcquiredJob) -> tuple[str, str, str]:
    """(log level, template id, template version id)."""
    if _kind(acquired) == "workspace_build":
        build = acquired.workspace_build
        return build.log_level, build.metadata.template_id, build.metadata.template_version_id
    metadata = acquired.template_import.metadata
    return "", metadata.template_id, metadata.template_version_id


# --- template import
async def _import(job: _Job) -> pd.CompletedJob:
    session, report, work = job.session, job.report, job.acquired.template_import
    init = await session.init(_init_request(job, omit=False), b"", report.stage(INITIALIZING, mark=False))
    if init.error:
        raise JobFailed(f"template import init error: {init.error}")
    parsed = await session.parse(report.stage(PARSING))
    if parsed.error:
        raise JobFailed(f"run parse: parse error: {parsed.error}")
    values = await _exchange_variables(job, parsed)
    start = await _provision(job, work.metadata, pb.WorkspaceTransition.START, values)
    stop = await _provision(job, work.metadata, pb.WorkspaceTransition.STOP, values)
    graph = start.graph
    return pd.CompletedJob(
        job_id=job.acquired.job_id,
        template_import=pd.CompletedJob.TemplateImport(
            start_resources=graph.resources,
            stop_resources=stop.graph.resources,
            rich_parameters=graph.parameters,
            external_auth_providers_names=[one.id for one in graph.external_auth_providers],
            external_auth_providers=graph.external_auth_providers,
            start_modules=init.modules,
            presets=graph.presets,
            plan=start.plan.plan,
            module_files=init.module_files,
            has_ai_tasks=graph.has_ai_tasks,
            has_external_agents=graph.has_external_agents,
        ),
    )


def _init_request(job: _Job, *, omit: bool) -> pb.InitRequest:
    return pb.InitRequest(template_source_archive=job.acquired.template_source_archive, omit_module_files=omit)


async def _exchange_variables(job: _Job, parsed: pb.ParseComplete) -> list[pb.VariableValue]:
    """Tells the server what the template declares; it answers with the values to use, or refuses."""
    request = pd.UpdateJobRequest(
        job_id=job.acquired.job_id,
        template_variables=parsed.template_variables,
        user_variable_values=job.acquired.template_import.user_variable_values,
        readme=parsed.readme,
        workspace_tags=parsed.workspace_tags,
    )
    try:
        response = await job.report.update(request)
    except RpcError as problem:
        raise JobFailed(f"update job: {problem.text}") from problem
    job.report.secrets.add(sensitive_values(response.variable_values))
    return list(response.variable_values)


@dataclass(frozen=True, slots=True)
class _Provisioned:
    plan: pb.PlanComplete
    graph: pb.GraphComplete


_IMPORT_STAGE = {
    pb.WorkspaceTransition.START: (PERSISTENT, "template import provision for start"),
    pb.WorkspaceTransition.STOP: (EPHEMERAL, "template import provision for stop"),
}


async def _provision(
    job: _Job,
    metadata: pb.Metadata,
    transition: pb.WorkspaceTransition.ValueType,
    values: list[pb.VariableValue],
) -> _Provisioned:
    """Plan and graph of one transition, without a workspace."""
    stage, wrapper = _IMPORT_STAGE[transition]
    asked = pb.Metadata(
        coder_url=metadata.coder_url,
        workspace_owner_groups=metadata.workspace_owner_groups,
        workspace_transition=transition,
    )
    request = pb.PlanRequest(metadata=asked, variable_values=values)
    return await _plan_and_graph(job, request, stage, wrapper, mark=True)


async def _plan_and_graph(job: _Job, request: pb.PlanRequest, stage: str, wrapper: str, *, mark: bool) -> _Provisioned:
    emit = job.report.stage(stage, mark=mark)
    plan = await job.session.plan(request, emit)
    if plan.error:
        raise JobFailed(f"{wrapper}: plan during template import provision error: {plan.error}")
    _check_ai_tasks(plan)
    source = pb.GraphRequest(metadata=request.metadata, source=pb.GraphSource.SOURCE_PLAN)
    graph = await job.session.graph(source, emit)
    if graph.error:
        raise JobFailed(f"{wrapper}: graph during template import provision error: {graph.error}")
    return _Provisioned(plan, graph)


def _check_ai_tasks(plan: pb.PlanComplete, build: pd.FailedJob.WorkspaceBuild | None = None) -> None:
    if plan.ai_task_count > 1:
        raise JobFailed(
            f"only one 'coder_ai_task' resource can be provisioned per template, found {plan.ai_task_count}", build
        )


# --- dry-run
async def _dry_run(job: _Job) -> pd.CompletedJob:
    work = job.acquired.template_dry_run
    init = await job.session.init(_init_request(job, omit=False), b"", job.report.stage(INITIALIZING, mark=False))
    if init.error:
        raise JobFailed(f"template dry-run init error: {init.error}")
    metadata = pb.Metadata()
    metadata.CopyFrom(work.metadata)
    metadata.workspace_transition = pb.WorkspaceTransition.START
    metadata.coder_url = metadata.coder_url or "http://localhost:3000"
    metadata.workspace_name = metadata.workspace_name or "dryrun"
    metadata.workspace_owner = metadata.workspace_owner or job.acquired.user_name or "dryrunner"
    metadata.workspace_id = metadata.workspace_id or str(uuid.uuid4())
    metadata.workspace_owner_id = metadata.workspace_owner_id or str(uuid.uuid4())
    request = pb.PlanRequest(
        metadata=metadata, rich_parameter_values=work.rich_parameter_values, variable_values=work.variable_values
    )
    found = await _plan_and_graph(job, request, PERSISTENT, "run dry-run provision job", mark=False)
    result = pd.CompletedJob.TemplateDryRun(resources=found.graph.resources, modules=init.modules)
    return pd.CompletedJob(job_id=job.acquired.job_id, template_dry_run=result)


# --- workspace build
async def _build(job: _Job) -> pd.CompletedJob:
    session, report, work = job.session, job.report, job.acquired.workspace_build
    timings = job.timings
    kept = pd.FailedJob.WorkspaceBuild
    modules = await _download_modules(job)
    init = await session.init(_init_request(job, omit=True), modules, report.stage(INITIALIZING, mark=False))
    timings += init.timings
    if init.error:
        raise JobFailed(init.error, kept(state=work.state, timings=timings))
    plan = await session.plan(_plan_request(work), report.stage(PLANNING, mark=False))
    timings += plan.timings
    if plan.error:
        raise JobFailed(plan.error, kept(timings=timings))
    _check_ai_tasks(plan, kept(timings=timings))
    await _commit_quota(job, plan.dailyCost)
    if report.canceled.is_set():
        raise JobFailed("canceled", kept(timings=timings))
    applying = pb.ApplyRequest(metadata=work.metadata)
    report.state = session.state  # from here on there may be something that must not be forgotten
    applied = await session.apply(applying, report.stage(APPLY_STAGE[work.metadata.workspace_transition]))
    report.state = None
    timings += applied.timings
    if applied.error:
        raise JobFailed(applied.error, kept(state=applied.state, timings=timings))
    source = pb.GraphRequest(metadata=work.metadata, source=pb.GraphSource.SOURCE_STATE)
    graph = await session.graph(source, report.stage(GRAPHING, mark=False))
    timings += graph.timings
    if graph.error:
        raise JobFailed(graph.error, kept(state=applied.state, timings=timings))
    return pd.CompletedJob(
        job_id=job.acquired.job_id,
        workspace_build=pd.CompletedJob.WorkspaceBuild(
            state=applied.state,
            resources=graph.resources,
            timings=timings,
            modules=init.modules,
            resource_replacements=plan.resource_replacements,
            ai_tasks=graph.ai_tasks,
        ),
    )


def _plan_request(work: pd.AcquiredJob.WorkspaceBuild) -> pb.PlanRequest:
    return pb.PlanRequest(
        metadata=work.metadata,
        rich_parameter_values=work.rich_parameter_values,
        variable_values=work.variable_values,
        external_auth_providers=work.external_auth_providers,
        previous_parameter_values=work.previous_parameter_values,
        state=work.state,
    )


async def _download_modules(job: _Job) -> bytes:
    file_id = job.acquired.workspace_build.metadata.template_version_modules_file
    if not file_id:
        return b""
    try:
        return await job.link.download(file_id)
    except (RpcError, RpcClosed, trio.TooSlowError) as problem:
        # They only save a download: init fetches modules itself.
        _log.warn("kept module files are not available", job=job.acquired.job_id, error=problem)
        return b""


async def _commit_quota(job: _Job, cost: int) -> None:
    transition = job.acquired.workspace_build.metadata.workspace_transition
    if cost == 0 or transition == pb.WorkspaceTransition.DESTROY:
        return
    request = pd.CommitQuotaRequest(job_id=job.acquired.job_id, daily_cost=cost)
    try:
        answer = await job.link.call("CommitQuota", request, pd.CommitQuotaResponse)
    except RpcError as problem:
        raise JobFailed(f"commit quota: {problem.text}", _timings_only(job)) from problem
    emit = job.report.stage(QUOTA, mark=False)
    emit(pb.LogLevel.INFO, f"Build cost       —   {cost}")
    emit(pb.LogLevel.INFO, f"Budget           —   {answer.budget}")
    emit(pb.LogLevel.INFO, f"Credits consumed —   {answer.credits_consumed}")
    if not answer.ok:
        emit(pb.LogLevel.WARN, "This build would exceed your quota. Failing.")
        raise JobFailed("insufficient quota", _timings_only(job))


def _timings_only(job: _Job) -> pd.FailedJob.WorkspaceBuild:
    return pd.FailedJob.WorkspaceBuild(timings=job.timings)


_KINDS = {"template_import": _import, "template_dry_run": _dry_run, "workspace_build": _build}
