"""Runner of one job from acquisition to its final report: import, dry-run or build
(docs/protocol/provisioners.md#jobs).

The three kinds are sequences of steps (`template_jobs.py`, `build_job.py`, both over `job_steps.py`). This module has
the parts common to all: heartbeats, cancellation, the final report. The executor carries out a step, the link
transports reports.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import trio

from coder.base.duration import format_duration
from coder.base.errors import CoderError, explain_error
from coder.base.log import get_logger
from coder.provisionerd import final_report
from coder.provisionerd.build_job import build_workspace
from coder.provisionerd.config import DaemonConfig, Shutdown
from coder.provisionerd.executors.contract import Executor, ExecutorSession, Settings
from coder.provisionerd.final_report import FinalReport
from coder.provisionerd.job_steps import Job, JobFailed
from coder.provisionerd.link import Link
from coder.provisionerd.redact import job_secrets
from coder.provisionerd.report import Reporter
from coder.provisionerd.template_jobs import dry_run, import_template
from coder.provisionerd.workdir import JobDirectory, job_directory
from coder.rpc.errors import RpcError
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
"Part of an error text -> code that clients act on (docs/protocol/provisioners.md#failures)."

_SHUTDOWN_ERROR = "provisioner daemon was shutdown gracefully"
_CANCEL_TIMED_OUT = "Cancel timed out"
_FINAL_REPORT_TIMEOUT = 5.0
"Seconds for the final report of a cancelled daemon."


async def run_job(
    acquired: pd.AcquiredJob,
    executors: Mapping[str, Executor],
    link: Link,
    config: DaemonConfig,
    shutdown: Shutdown,
) -> bool:
    """Run a job and report its end; return whether it succeeded. Raises only when cancelled from outside, which is
    reported too."""
    log = _log.bind(job=acquired.job_id, daemon=config.name)
    log.info("job started", kind=acquired.WhichOneof("type"), provisioner=acquired.provisioner)
    report = Reporter(link, acquired.job_id, config)
    report.secrets.add(job_secrets(acquired))
    report.stage(SETTING_UP)
    outcome: FinalReport | None = None
    with contextlib.ExitStack() as directories:
        run = _Run(acquired, executors, link, config, shutdown, report, directories)
        try:
            outcome = await run.work()
        finally:
            if outcome is None:
                # Cancelled. When the server is away too, the next daemon of this name reports the end.
                with trio.move_on_after(_FINAL_REPORT_TIMEOUT if link.is_connected else 0, shield=True):
                    await run.deliver(run.result() or run.failed(JobFailed(_SHUTDOWN_ERROR)))
        await run.deliver(outcome)
    log.info("job ended", error=outcome.error if isinstance(outcome, pd.FailedJob) else "")
    return not isinstance(outcome, pd.FailedJob)


class _Run:
    """Job with its heartbeats, cancellation and final report."""

    def __init__(
        self,
        acquired: pd.AcquiredJob,
        executors: Mapping[str, Executor],
        link: Link,
        config: DaemonConfig,
        shutdown: Shutdown,
        report: Reporter,
        directories: contextlib.ExitStack,
    ) -> None:
        self._acquired = acquired
        self._executors = executors
        self._link = link
        self._config = config
        self._shutdown = shutdown
        self._report = report
        self._directories = directories
        self._directory: JobDirectory | None = None
        self._last_state = b""
        self._completed: pd.CompletedJob | None = None
        self._failure: JobFailed | None = None
        self._timed_out = False

    async def work(self) -> FinalReport:
        async with trio.open_nursery() as reporting:
            reporting.start_soon(self._heartbeat, reporting.cancel_scope)
            async with trio.open_nursery() as nursery:
                await self._attempt(nursery)
                nursery.cancel_scope.cancel()
            self._report.finish()
        return self.result() or self.failed(JobFailed("internal error: the job ended without a result"))

    def result(self) -> FinalReport | None:
        """Return the result of the work; None before its end. The last lines may still be on their way."""
        problem = self._failure
        if problem is None:
            return self._completed
        if self._timed_out:
            problem = JobFailed(f"{self._time_limit_text()}: {problem.message}", problem.build)
        return self.failed(problem)

    async def _heartbeat(self, scope: trio.CancelScope) -> None:
        try:
            await self._report.run()
        except RpcError as problem:
            self._failure = JobFailed(f"send periodic update: {problem.text}")
            scope.cancel()

    async def _attempt(self, nursery: trio.Nursery) -> None:
        try:
            job_id, kind = self._acquired.job_id, _kind(self._acquired)
            context = job_directory(self._config.work_dir, job_id=job_id, kind=kind, daemon=self._config.name)
            self._directory = self._directories.enter_context(context)
            executor = self._executors.get(self._acquired.provisioner)
            if executor is None:
                raise JobFailed(f"this provisioner has no executor for {self._acquired.provisioner!r}")
            settings = Settings(self._directory.path, *_settings(self._acquired))
            async with executor.open(settings) as session:
                nursery.start_soon(self._watch_cancel, session, nursery.cancel_scope)
                nursery.start_soon(self._watch_time, session, nursery.cancel_scope)
                try:
                    job = Job(self._acquired, session, self._report, self._link)
                    self._completed = await _JOB_FUNCTIONS[_kind(self._acquired)](job)
                finally:
                    self._last_state = session.state()
        except JobFailed as problem:
            self._failure = problem
        except CoderError as problem:
            self._failure = JobFailed(f"open session: {explain_error(problem)}")
        except OSError as problem:
            # Its machine's fault, not the template's: no descriptors, no memory, no room on the disk.
            _log.error("a job failed for its machine", job=self._acquired.job_id, error=problem)
            self._failure = JobFailed(f"the provisioner's machine refused: {explain_error(problem)}")
        except Exception as problem:
            # One bad template must not end the daemon.
            _log.error("a job crashed", job=self._acquired.job_id, error=problem)
            self._failure = JobFailed(f"internal error: {type(problem).__name__}: {problem}")

    async def _watch_cancel(self, session: ExecutorSession, scope: trio.CancelScope) -> None:
        async with trio.open_nursery() as nursery:

            async def until(wait: Callable[[], Awaitable[None]]) -> None:
                await wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(until, self._report.canceled.wait)
            nursery.start_soon(until, self._shutdown.wait_canceling)
        session.cancel()
        await trio.sleep(self._config.force_cancel)
        self._failure = JobFailed(_CANCEL_TIMED_OUT)
        scope.cancel()

    async def _watch_time(self, session: ExecutorSession, scope: trio.CancelScope) -> None:
        """Interrupt a job that exceeds its time limit like a canceled one, and kill it when it ignores that."""
        if not self._config.job_timeout:
            return
        await trio.sleep(self._config.job_timeout)
        self._timed_out = True
        self._report.stage(CLEANING_UP, mark=False)(pb.LogLevel.ERROR, f"{self._time_limit_text()}: interrupting it")
        session.cancel()
        await trio.sleep(self._config.exit_timeout)
        self._failure = JobFailed("it ignored the interrupt and was killed")
        scope.cancel()

    def _time_limit_text(self) -> str:
        return f"the job took longer than {format_duration(timedelta(seconds=self._config.job_timeout))}"

    def failed(self, problem: JobFailed) -> pd.FailedJob:
        text = self._report.secrets.clean(problem.message)
        code = next((code for part, code in ERROR_CODES.items() if part in text), "")
        failed = pd.FailedJob(job_id=self._acquired.job_id, error=text, error_code=code)
        if _kind(self._acquired) == "workspace_build":
            build = problem.build or pd.FailedJob.WorkspaceBuild(state=self._last_state)
            failed.workspace_build.CopyFrom(build)
        return failed

    async def deliver(self, outcome: FinalReport) -> None:
        """Send the job's end. Its directory is kept until the server accepted it."""
        self._report.stage(CLEANING_UP)
        if self._directory is not None:
            self._directory.keep(final_report.encode(outcome))
        try:
            await self._flush()
            await final_report.send(self._link, outcome, self.failed(JobFailed("")))
        except RpcError as problem:
            _log.warn("the server rejected the end of a job", job=self._acquired.job_id, error=problem.text)
            if not final_report.is_settled(problem):
                return
        if self._directory is not None:
            self._directory.release()

    async def _flush(self) -> None:
        try:
            await self._report.flush()
        except RpcError as problem:
            if final_report.is_settled(problem):
                raise
            # The end matters more than the last lines.
            _log.warn("the last lines of a job were rejected", job=self._acquired.job_id, error=problem.text)


def _kind(acquired: pd.AcquiredJob) -> str:
    return acquired.WhichOneof("type") or "template_dry_run"


def _settings(acquired: pd.AcquiredJob) -> tuple[str, str, str]:
    """Return (log level, template id, template version id)."""
    if _kind(acquired) == "workspace_build":
        build = acquired.workspace_build
        return build.log_level, build.metadata.template_id, build.metadata.template_version_id
    metadata = acquired.template_import.metadata
    return "", metadata.template_id, metadata.template_version_id


_JOB_FUNCTIONS = {"template_import": import_template, "template_dry_run": dry_run, "workspace_build": build_workspace}
