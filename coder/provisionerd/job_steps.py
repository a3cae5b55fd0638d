"""Shared parts of the three kinds of jobs: their stages, their failures, and common steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from coder.base.errors import CoderError
from coder.provisionerd.executors.contract import ExecutorSession
from coder.provisionerd.link import Link
from coder.provisionerd.report import Reporter
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd

INITIALIZING = "Initializing Terraform Directory"

PARSING = "Parsing template parameters"

PERSISTENT = "Detecting persistent resources"

EPHEMERAL = "Detecting ephemeral resources"

PLANNING = "Planning Infrastructure"

QUOTA = "Commit quota"

GRAPHING = "Graphing Infrastructure"

APPLY_STAGE = {
    pb.WorkspaceTransition.START: "Starting workspace",
    pb.WorkspaceTransition.STOP: "Stopping workspace",
    pb.WorkspaceTransition.DESTROY: "Destroying workspace",
}


class JobFailed(CoderError):  # noqa: N818 - how a job ends more than a mistake
    """The job fails with this text. `build` is the part of a workspace build that is kept."""

    def __init__(self, text: str, build: pd.FailedJob.WorkspaceBuild | None = None) -> None:
        super().__init__("job_failed", text)
        self.build = build


@dataclass(slots=True)
class Job:
    """Context of a job's steps."""

    acquired: pd.AcquiredJob
    session: ExecutorSession
    report: Reporter
    link: Link
    timings: list[pb.Timing] = field(default_factory=list)


def init_request(job: Job, *, omit: bool) -> pb.InitRequest:
    return pb.InitRequest(template_source_archive=job.acquired.template_source_archive, omit_module_files=omit)


@dataclass(frozen=True, slots=True)
class Provisioned:
    plan: pb.PlanComplete
    graph: pb.GraphComplete


async def plan_and_graph(job: Job, request: pb.PlanRequest, stage: str, wrapper: str, *, mark: bool) -> Provisioned:
    emit = job.report.stage(stage, mark=mark)
    plan = await job.session.plan(request, emit)
    if plan.error:
        raise JobFailed(f"{wrapper}: plan during template import provision error: {plan.error}")
    check_ai_tasks(plan)
    source = pb.GraphRequest(metadata=request.metadata, source=pb.GraphSource.SOURCE_PLAN)
    graph = await job.session.graph(source, emit)
    if graph.error:
        raise JobFailed(f"{wrapper}: graph during template import provision error: {graph.error}")
    return Provisioned(plan, graph)


def check_ai_tasks(plan: pb.PlanComplete, build: pd.FailedJob.WorkspaceBuild | None = None) -> None:
    if plan.ai_task_count > 1:
        raise JobFailed(
            f"only one 'coder_ai_task' resource can be provisioned per template, found {plan.ai_task_count}", build
        )
