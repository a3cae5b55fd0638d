"""One job from acquisition to its final report: import, dry-run or build (docs/protocol/provisioners.md#jobs).

The three kinds are sequences of steps (`template_jobs.py`, `build_job.py`, both over `job_steps.py`); here is what
stands around each of them: heartbeats, cancellation, the final report. How a step is done is the executor's business,
how reports travel the link's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import trio

from coder.base.duration import format_duration
from coder.base.errors import CoderError, explain_error
from coder.base.log import get_logger
from coder.base.threads import in_thread_or_here
from coder.provisionerd.build_job import build_workspace
from coder.provisionerd.config import DaemonConfig, Shutdown
from coder.provisionerd.executors.contract import Executor, ExecutorSession, Settings
from coder.provisionerd.job_steps import Job, JobFailed
from coder.provisionerd.link import MAX_MESSAGE, Link
from coder.provisionerd.redact import job_secrets
from coder.provisionerd.report import Reporter
from coder.provisionerd.template_jobs import dry_run, import_template
from coder.provisionerd.workdir import job_directory, leftovers
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd

_log = get_logger("provisionerd.run")

SETTING_UP = "Setting up"
CLEANING_UP = "Cleaning Up"

ERROR_CODES = {
    "missing parameter": "MISSING_TEMPLATE_PARAMETER",
    "required template variables": "REQUIRED_TEMPLATE_VARIABLES",
    "insufficient quota": "INSUFFICIENT_QUOTA",
}
"What an error text holds -> the code clients act on (docs/protocol/provisioners.md#failures)."

_SHUT_DOWN = "provisioner daemon was shutdown gracefully"
_KILLED = "provisioner was killed while it worked on the job"
_CANCEL_TIMED_OUT = "Cancel timed out"
_LAST_WORDS = 5.0
"Seconds for the final report of a daemon that is being stopped the hard way."


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
    for leftover in await in_thread_or_here(leftovers, config.work_dir, config.name):
        failed = pd.FailedJob(job_id=leftover.job_id, error=_KILLED)
        if leftover.kind == "workspace_build":
            failed.workspace_build.state = leftover.state
        try:
            await link.call("FailJob", failed, pd.Empty)
            _log.warn("a job was lost when this provisioner was killed", job=leftover.job_id, daemon=config.name)
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
                    raise JobFailed(f"this provisioner has no executor for {self._acquired.provisioner!r}")
                settings = Settings(folder, *_settings(self._acquired))
                async with executor.open(settings) as session:
                    nursery.start_soon(self._watch_cancel, session, nursery.cancel_scope)
                    nursery.start_soon(self._watch_time, session, nursery.cancel_scope)
                    try:
                        job = Job(self._acquired, session, self._report, self._link)
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


_KINDS = {"template_import": import_template, "template_dry_run": dry_run, "workspace_build": build_workspace}
