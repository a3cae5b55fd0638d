"""Jobs without a workspace: import and dry run of a template version."""

from __future__ import annotations

import json
import uuid

from coder.base.json_types import as_object
from coder.provisionerd.job_steps import (
    EPHEMERAL,
    INITIALIZING,
    PARSING,
    PERSISTENT,
    Job,
    JobFailed,
    Provisioned,
    init_request,
    plan_and_graph,
)
from coder.provisionerd.redact import Redactor, sensitive_values
from coder.provisionerd.terraform.extract.planned import planned_changes
from coder.rpc.errors import RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd


async def import_template(job: Job) -> pd.CompletedJob:
    session, report, work = job.session, job.report, job.acquired.template_import
    init = await session.init(init_request(job, omit=False), b"", report.stage(INITIALIZING, mark=False))
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
            external_auth_providers_names=[provider.id for provider in graph.external_auth_providers],
            external_auth_providers=graph.external_auth_providers,
            start_modules=init.modules,
            presets=graph.presets,
            plan=start.plan.plan,
            module_files=init.module_files,
            has_ai_tasks=graph.has_ai_tasks,
            has_external_agents=graph.has_external_agents,
        ),
    )


async def _exchange_variables(job: Job, parsed: pb.ParseComplete) -> list[pb.VariableValue]:
    """Send the template's declarations; return the values to use from the server's reply."""
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


_IMPORT_STAGE = {
    pb.WorkspaceTransition.START: (PERSISTENT, "template import provision for start"),
    pb.WorkspaceTransition.STOP: (EPHEMERAL, "template import provision for stop"),
}


async def _provision(
    job: Job,
    metadata: pb.Metadata,
    transition: pb.WorkspaceTransition.ValueType,
    values: list[pb.VariableValue],
) -> Provisioned:
    """Plan and graph one transition, without a workspace."""
    stage, wrapper = _IMPORT_STAGE[transition]
    plan_metadata = pb.Metadata(
        coder_url=metadata.coder_url,
        workspace_owner_groups=metadata.workspace_owner_groups,
        workspace_transition=transition,
    )
    request = pb.PlanRequest(metadata=plan_metadata, variable_values=values)
    return await plan_and_graph(job, request, stage, wrapper, mark=True)


async def dry_run(job: Job) -> pd.CompletedJob:
    work = job.acquired.template_dry_run
    init = await job.session.init(init_request(job, omit=False), b"", job.report.stage(INITIALIZING, mark=False))
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
        metadata=metadata,
        rich_parameter_values=work.rich_parameter_values,
        variable_values=work.variable_values,
        previous_parameter_values=work.previous_parameter_values,
        state=work.state,
    )
    provisioned = await plan_and_graph(job, request, PERSISTENT, "run dry-run provision job", mark=False)
    result = pd.CompletedJob.TemplateDryRun(resources=provisioned.graph.resources, modules=init.modules)
    planned = _planned(provisioned.plan.plan, job.report.secrets) if work.preview else None
    if planned is not None:
        result.planned.CopyFrom(planned)
    return pd.CompletedJob(job_id=job.acquired.job_id, template_dry_run=result)


def _planned(plan: bytes, secrets: Redactor) -> pd.PlannedChanges | None:
    """Return the changes of a plan; None when the executor sent no plan: unknown changes are not "no changes"."""
    try:
        document = as_object(json.loads(plan)) if plan else {}
    except (ValueError, RecursionError):
        return None
    # Terraform leaves the changes out of a plan without any; an executor that plans nothing has neither.
    return planned_changes(document, secrets) if document.keys() & {"resource_changes", "planned_values"} else None
