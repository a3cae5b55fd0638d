"""Final report of a job: sent until the server accepts or settles it, and kept on the disk meanwhile."""

from __future__ import annotations

import hashlib

import trio
from google.protobuf.message import DecodeError

from coder.base.log import get_logger
from coder.base.threads import in_thread_or_here
from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.link import MAX_MESSAGE, Link
from coder.provisionerd.workdir import leftovers
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import provisionerd_pb2 as pd

FinalReport = pd.CompletedJob | pd.FailedJob

_log = get_logger("provisionerd.run")
_KILLED_ERROR = "provisioner was killed while it worked on the job"
_COMPLETED, _FAILED = b"C", b"F"
_SETTLED = ("already completed", "no such job")
"""Parts of the replies about a job that has an end, or does not belong to this daemon."""


def is_settled(problem: RpcError) -> bool:
    """Return whether a refusal means that the server needs no report of this job."""
    return any(part in problem.text for part in _SETTLED)


def encode(report: FinalReport) -> bytes:
    """Return a report as kept on the disk: a letter for its kind, then the message."""
    return (_COMPLETED if isinstance(report, pd.CompletedJob) else _FAILED) + report.SerializeToString()


def decode(data: bytes) -> FinalReport | None:
    """Return the report in `data`; None for anything else."""
    report: FinalReport = pd.CompletedJob() if data[:1] == _COMPLETED else pd.FailedJob()
    try:
        report.ParseFromString(data[1:])
    except DecodeError:
        return None
    return report if report.job_id else None


async def send(link: Link, report: FinalReport, failed: pd.FailedJob) -> None:
    """Send a job's end. A rejected result is replaced by `failed`, with the reason. Raises RpcError."""
    if isinstance(report, pd.FailedJob):
        await link.call("FailJob", report, pd.Empty, final=True)
        return
    modules = report.template_import.module_files
    if modules and report.ByteSize() > MAX_MESSAGE:
        digest = hashlib.sha256(modules).digest()
        try:
            await link.upload(modules, digest)
            report.template_import.module_files_hash = digest
        except (RpcError, RpcClosed, trio.TooSlowError, trio.EndOfChannel) as problem:
            _log.warn("module files were not stored", job=report.job_id, error=problem)
        report.template_import.module_files = b""
    try:
        await link.call("CompleteJob", report, pd.Empty, final=True)
    except RpcError as problem:
        # For example a result too big for one message: the job must still end with a reason.
        failed.error = f"complete job: {problem.text}"
        if failed.ByteSize() > MAX_MESSAGE:
            failed.workspace_build.ClearField("state")
        await link.call("FailJob", failed, pd.Empty, final=True)


async def report_leftovers(link: Link, config: DaemonConfig) -> None:
    """Report the jobs that were running when this daemon was killed, or whose end no server accepted, so that no user
    waits for the reaper and no state is lost."""
    for leftover in await in_thread_or_here(leftovers, config.work_dir, config.name):
        failed = pd.FailedJob(job_id=leftover.job_id, error=_KILLED_ERROR)
        if leftover.kind == "workspace_build":
            failed.workspace_build.state = leftover.state
        report = decode(leftover.report) or failed
        try:
            await send(link, report, failed)
            _log.warn("a job of the previous provisioner was reported", job=leftover.job_id, daemon=config.name)
        except RpcError as problem:
            if not is_settled(problem) and not leftover.is_stale:
                _log.warn("the end of a lost job was rejected and is kept", job=leftover.job_id, reason=problem.text)
                continue
            _log.info("a lost job had already ended", job=leftover.job_id, reason=problem.text)
        leftover.remove()
