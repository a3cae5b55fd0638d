"""Workspace builds: plan, quota, apply, graph; and the state that a failing build keeps."""

from __future__ import annotations

import trio

from coder.base.log import get_logger
from coder.provisionerd.job_steps import (
    APPLY_STAGE,
    GRAPHING,
    INITIALIZING,
    PLANNING,
    QUOTA,
    Job,
    JobFailed,
    check_ai_tasks,
    init_request,
)
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd

_log = get_logger("provisionerd.build_job")


async def build_workspace(job: Job) -> pd.CompletedJob:
    session, report, work = job.session, job.report, job.acquired.workspace_build
    timings = job.timings
    failed_build = pd.FailedJob.WorkspaceBuild
    transition = work.metadata.workspace_transition
    if transition not in APPLY_STAGE:
        raise JobFailed(
            f"unknown transition {transition}: is this provisioner older than the server?",
            failed_build(state=work.state),
        )
    modules = await _download_modules(job)
    init = await session.init(init_request(job, omit=True), modules, report.stage(INITIALIZING, mark=False))
    timings += init.timings
    if init.error:
        raise JobFailed(init.error, failed_build(state=work.state, timings=timings))
    plan = await session.plan(_plan_request(work), report.stage(PLANNING, mark=False))
    timings += plan.timings
    if plan.error:
        raise JobFailed(plan.error, failed_build(timings=timings))
    check_ai_tasks(plan, failed_build(timings=timings))
    await _commit_quota(job, plan.dailyCost)
    if report.canceled.is_set():
        raise JobFailed("canceled", failed_build(timings=timings))
    applying = pb.ApplyRequest(metadata=work.metadata)
    report.state = session.state  # from here on resources may exist, and their state must not be lost
    applied = await session.apply(applying, report.stage(APPLY_STAGE[transition]))
    report.state = None
    timings += applied.timings
    if applied.error:
        raise JobFailed(applied.error, failed_build(state=applied.state, timings=timings))
    source = pb.GraphRequest(metadata=work.metadata, source=pb.GraphSource.SOURCE_STATE)
    graph = await session.graph(source, report.stage(GRAPHING, mark=False))
    timings += graph.timings
    if graph.error:
        raise JobFailed(graph.error, failed_build(state=applied.state, timings=timings))
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


async def _download_modules(job: Job) -> bytes:
    file_id = job.acquired.workspace_build.metadata.template_version_modules_file
    if not file_id:
        return b""
    try:
        return await job.link.download(file_id)
    except (RpcError, RpcClosed, trio.TooSlowError) as problem:
        # Stored modules only save a download: init fetches modules itself.
        _log.warn("stored module files are not available", job=job.acquired.job_id, error=problem)
        return b""


async def _commit_quota(job: Job, cost: int) -> None:
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


def _timings_only(job: Job) -> pd.FailedJob.WorkspaceBuild:
    return pd.FailedJob.WorkspaceBuild(timings=job.timings)
