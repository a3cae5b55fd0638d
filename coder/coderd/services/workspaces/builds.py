"""Builds of workspaces: starting them, reading, canceling, their parameters, state and timings."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from msgspec import UnsetType

from coder.api.agents.agent_timings import AgentConnectionTiming, AgentScriptTiming
from coder.api.base.refusals import (
    FORBIDDEN_DETAIL,
    Forbidden,
    Invalid,
    InvalidFields,
    NotFound,
    Precondition,
)
from coder.api.provisioning.job_timings import ProvisionerTiming
from coder.api.provisioning.jobs import MatchedProvisioners
from coder.api.templates.parameters import WorkspaceBuildParameter
from coder.api.workspaces.build_requests import CreateWorkspaceBuildRequest, UpdateWorkspaceBuildStateRequest
from coder.api.workspaces.build_timings import WorkspaceBuildTimings
from coder.api.workspaces.builds import WorkspaceBuild, WorkspaceResource
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import (
    hold_template_of,
    load_workspace,
    lock_workspace,
    template_resource,
    workspace_resource,
)
from coder.coderd.services.agents.agent_view import view_context
from coder.coderd.services.agents.resource_view import LoadedResources, load_resources, present_resources
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.notifications import update_notifications
from coder.coderd.services.provisioning import jobs as job_service
from coder.coderd.services.workspaces.build_metrics import counted
from coder.coderd.services.workspaces.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.build_requests import BuildRequest, BuildRules, enqueue_build
from coder.coderd.services.workspaces.build_results import build_ended
from coder.coderd.services.workspaces.workspace_view import LoadedPage, load_page, present_build
from coder.coderd.store.agents import agent_scripts as script_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.builds import BuildRow, BuildView
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.access.policy import Resource, Subject
from coder.domain.foundation.search import int_fault
from coder.domain.provisioning.allowed_actions import is_silent, may_cancel
from coder.domain.workspaces.builds import is_active

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.provisioning.jobs import JobRow

MAX_VALUES = 1 << 20
"""Ours: characters of all parameter values of a request. The body may be larger, for a state's sake; a rendering could
not answer with more."""
_ACTIONS = {"start": "start", "stop": "stop", "delete": "delete"}
_DONE_TO_IT = {"start": "update", "stop": "update", "delete": "delete"}
"What a transition does to a workspace, as its refusal says it."
_NO_CANCEL = "User is not allowed to cancel workspace builds. Owner role is required."
_UNKNOWN_BUILD = 'Workspace "{name}" Build {number} does not exist.'


@dataclass(frozen=True, slots=True)
class QueuedBuild:
    """A new build as its creator sees it."""

    view: BuildView
    matched: MatchedProvisioners


async def create_build(
    ctx: Context, subject: Subject, workspace_id: UUID, body: CreateWorkspaceBuildRequest
) -> WorkspaceBuild:
    """Queues a start, stop or delete.

    Raises InvalidFields, NotFound, Forbidden, Conflict (one is active), Invalid.
    """
    request = read_request(subject, body)
    view = await load_workspace(ctx, subject, workspace_id)
    _check_buildable(subject, view.workspace, request)  # before the values are worked out, and again in `enqueue_next`
    target = BuildTarget(view.workspace.owner_id, view.workspace.template_id, workspace_id)

    async def enqueue(request: BuildRequest) -> QueuedBuild:
        return await ctx.db.run(enqueue_next, subject, workspace_id, request, rules_of(ctx), ctx.clock.now())

    with counted(ctx, request) as count:
        queued = await enqueue_with_values(ctx, request, target, enqueue)
        count(queued.view.job.provisioner)
    before, after = view.latest.build.template_version_id, queued.view.build.template_version_id
    if request.transition == "start" and before != after:
        await update_notifications.workspace_updated(ctx, queued.view.build.job_id)
    return present_new(ctx, queued)


def read_request(subject: Subject, body: CreateWorkspaceBuildRequest) -> BuildRequest:
    """The body, whose rules hold, as a build request. Raises InvalidFields, Invalid."""
    state = _state_of(body)
    if body.orphan is True:
        if body.transition != "delete":
            raise Invalid("Orphan is only permitted when deleting a workspace.")
        if state:
            raise Invalid("ProvisionerState cannot be set alongside Orphan since state intent is unclear.")
    return BuildRequest(
        transition=body.transition,
        initiator_id=subject.user_id,
        version_id=given_id(body.template_version_id),
        given=given_values(body.rich_parameter_values),
        preset_id=given_id(body.template_version_preset_id),
        state=state or None,
        orphan=body.orphan is True,
        log_level=body.log_level or "",
        reason=body.reason or "initiator",
    )


def rules_of(ctx: Context) -> BuildRules:
    return BuildRules(ctx.config.enable_terraform_debug_mode, ctx.config.provisioner_strict_tags)


def given_id(value: UUID | UnsetType | None) -> UUID | None:
    """An optional id of a request; the nil UUID means none."""
    return value if isinstance(value, UUID) and value.int else None


def given_values(values: list[WorkspaceBuildParameter] | UnsetType | None) -> dict[str, str]:
    """Parameter values of a request; of several for one name the last counts. Raises InvalidFields, Invalid."""
    found = {item.name: item.value for item in values or ()}
    if sum(len(name) + len(value) for name, value in found.items()) > MAX_VALUES:
        raise Invalid("The parameter values are too large.", f"Together they may have {MAX_VALUES >> 20} MiB.")
    bad = [name for name, value in found.items() if "\x00" in name + value]
    if bad:
        raise InvalidFields(*((name.replace("\x00", ""), "must not contain NUL") for name in bad))
    return found


def _state_of(body: CreateWorkspaceBuildRequest | UpdateWorkspaceBuildStateRequest) -> bytes:
    """Of a request whose rules hold."""
    return base64.b64decode(body.state, validate=True) if body.state else b""


def _check_buildable(subject: Subject, row: workspace_store.WorkspaceRow, request: BuildRequest) -> None:
    _require_transition(subject, row, request)
    if row.deleted:
        raise Invalid(f'Workspace "{row.name}" was deleted.', "A deleted workspace cannot be built.")


def _require_transition(subject: Subject, row: workspace_store.WorkspaceRow, request: BuildRequest) -> None:
    # Starting wakes a dormant workspace: it is judged as the workspace it will be.
    dormant = False if request.transition == "start" else None
    try:
        require(subject, _ACTIONS[request.transition], workspace_resource(row, dormant=dormant))
    except Forbidden as refusal:
        # Whoever may read it is told what it is about: the only place where a refusal of rights names the action.
        said = f"You do not have permission to {_DONE_TO_IT[request.transition]} this workspace."
        raise Forbidden(said, FORBIDDEN_DETAIL) from refusal


async def enqueue_next(
    tx: Tx, subject: Subject, workspace_id: UUID, request: BuildRequest, rules: BuildRules, now: datetime
) -> QueuedBuild:
    """Another build of a workspace, inside a transaction. Refusals as of `enqueue_build`; who may, is asked here."""
    template = await hold_template_of(tx, workspace_id)
    workspace = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    _check_buildable(subject, workspace, request)
    build = await enqueue_build(tx, subject, workspace, template, request, rules, now)
    return await read_queued_build(tx, build.id, rules, now)


async def read_queued_build(tx: Tx, build_id: UUID, rules: BuildRules, now: datetime) -> QueuedBuild:
    """The build just queued, with the daemons that could take it."""
    view = await build_store.get_view(tx, build_id)
    if view is None:
        raise NotFound
    return QueuedBuild(view, await job_service.match_provisioners(tx, view.job, now, strict=rules.strict_tags))


def present_new(ctx: Context, queued: QueuedBuild) -> WorkspaceBuild:
    """As the answer to its creation looks: the version has no name yet, provisioners were counted."""
    answer = present_build(ctx, queued.view, LoadedPage(LoadedResources({}, {}, {}), {}))
    answer.template_version_name = ""
    answer.matched_provisioners = queued.matched
    return answer


async def get_build(ctx: Context, subject: Subject, build_id: UUID) -> WorkspaceBuild:
    return await _present(ctx, await load_build(ctx, subject, build_id))


async def get_build_by_number(
    ctx: Context, subject: Subject, owner_id: UUID, name: str, number_text: str
) -> WorkspaceBuild:
    """By owner, workspace name and number. Raises NotFound, Invalid."""
    fault = int_fault(number_text, 32)
    refusal = Invalid("Failed to parse build number as integer.", fault) if fault else None
    # One's own are told before it is looked for the workspace (recorded). Of others' it would tell who there is.
    if refusal and owner_id == subject.user_id:
        raise refusal
    view = await ctx.db.read(workspace_store.get_view_by_name, owner_id, name)
    if view is None:
        raise NotFound
    require(subject, "read", workspace_resource(view.workspace))
    if refusal:
        raise refusal
    found = await ctx.db.read(build_store.get_view_by_number, view.workspace.id, int(number_text))
    if found is None:
        raise NotFound(_UNKNOWN_BUILD.format(name=view.workspace.name, number=int(number_text)))
    return await _present(ctx, found)


@dataclass(frozen=True, slots=True)
class BuildPage:
    """Which builds of a workspace to list."""

    since: datetime | None = None
    after: UUID | None = None
    limit: int = 0
    offset: int = 0


async def list_builds(ctx: Context, subject: Subject, workspace_id: UUID, which: BuildPage) -> list[WorkspaceBuild]:
    """Newest first. Raises NotFound."""
    await load_workspace(ctx, subject, workspace_id)
    if which.after is not None:
        earlier = await ctx.db.read(build_store.get_build, which.after)
        if earlier is None or earlier.workspace_id != workspace_id:
            raise Invalid(f'Record at "after_id" ("{which.after}") does not exist.')
    now, strict = ctx.clock.now(), strict_tags(ctx)
    views, page = await ctx.db.read(_list, workspace_id, which, now, strict)
    return [present_build(ctx, view, page) for view in views]


async def _list(
    tx: Tx, workspace_id: UUID, which: BuildPage, now: datetime, strict: bool
) -> tuple[list[BuildView], LoadedPage]:
    views = await build_store.list_views(
        tx, workspace_id, since=which.since, after=which.after, limit=which.limit, offset=which.offset
    )
    return views, await load_page(tx, views, now, strict=strict)


def strict_tags(ctx: Context) -> bool:
    return ctx.config.provisioner_strict_tags


async def _present(ctx: Context, view: BuildView) -> WorkspaceBuild:
    page = await ctx.db.read(load_page, [view], ctx.clock.now(), strict=strict_tags(ctx))
    return present_build(ctx, view, page)


async def load_build(ctx: Context, subject: Subject, build_id: UUID) -> BuildView:
    """Raises NotFound when its workspace may not be read."""
    view = await ctx.db.read(build_store.get_view, build_id)
    if view is None:
        raise NotFound
    await load_workspace(ctx, subject, view.build.workspace_id)
    return view


async def cancel_build(ctx: Context, subject: Subject, build_id: UUID, expect: str = "") -> None:
    """Asks the build's job to stop.

    Raises NotFound, Invalid (ended, unknown expectation), Forbidden (the template does not let users cancel),
    Precondition (the job is not in the expected state).
    """
    if expect and expect not in {"pending", "running"}:
        raise Invalid(f"Invalid expect_status \"{expect}\". Only 'running' or 'pending' are allowed.")
    view = await load_build(ctx, subject, build_id)
    workspace = await load_workspace(ctx, subject, view.build.workspace_id)
    if not _allows_cancel(subject, workspace) and not _may_cancel(view.job, ctx.clock.now()):
        raise Forbidden(_NO_CANCEL)
    require(subject, "update", workspace_resource(workspace.workspace))
    await ctx.db.run(_cancel, subject, view.build, expect, ctx.clock.now())


def _allows_cancel(subject: Subject, workspace: WorkspaceView) -> bool:
    return workspace.template.allow_user_cancel_workspace_jobs or subject.is_owner


def _may_cancel(job: JobRow, now: datetime) -> bool:
    """Against the template's spec: nothing is interrupted that is not over already."""
    over = job.completed_at is not None
    return not over and may_cancel(job.status, silent=is_silent(job.updated_at, now), template_allows=False)


async def _cancel(tx: Tx, subject: Subject, build: BuildRow, expect: str, now: datetime) -> None:
    # Asked again of locked rows: the workspace may have changed hands meanwhile, and a daemon have taken the job. The
    # job first, as whoever completes the build.
    job = await job_store.get_job(tx, build.job_id, lock=True)
    workspace = await lock_workspace(tx, subject, build.workspace_id)
    if expect and job is not None and job.status != expect:
        raise Precondition("Job is not in the expected state.", f'Expected: "{expect}", actual: "{job.status}".')
    allowed = _allows_cancel(subject, workspace)
    if job is not None and job.completed_at is None and not allowed and not _may_cancel(job, now):
        raise Forbidden(_NO_CANCEL)
    changed = await job_service.cancel_job(tx, build.job_id, now)
    if changed.completed_at is not None:
        await build_ended(tx, build.job_id, now)


async def get_parameters(ctx: Context, subject: Subject, build_id: UUID) -> list[WorkspaceBuildParameter]:
    view = await load_build(ctx, subject, build_id)
    values = await ctx.db.read(build_store.list_parameters, view.build.id)
    return [WorkspaceBuildParameter(name=name, value=value) for name, value in values.items()]


async def get_resources(ctx: Context, subject: Subject, build_id: UUID) -> list[WorkspaceResource]:
    """Raises Invalid while the job runs."""
    view = await load_build(ctx, subject, build_id)
    if is_active(view.job.status):
        raise Invalid("Job hasn't completed!")
    loaded = await ctx.db.read(load_resources, [view.job.id])
    return present_resources(loaded, view.job.id, view_context(ctx, view.workspace_name, view.owner_username))


async def get_state(ctx: Context, subject: Subject, build_id: UUID) -> bytes:
    """The Terraform state: secrets included, so template managers only (others get NotFound)."""
    view = await _load_for_managers(ctx, subject, build_id)
    return await ctx.db.read(build_store.get_state, view.build.id)


async def put_state(ctx: Context, subject: Subject, build_id: UUID, wanted: UpdateWorkspaceBuildStateRequest) -> None:
    """Raises NotFound, Invalid."""
    view = await _load_for_managers(ctx, subject, build_id)
    check_request(wanted)
    await ctx.db.run(_put_state, subject, view.build, _state_of(wanted))


async def _put_state(tx: Tx, subject: Subject, build: BuildRow, state: bytes) -> None:
    template = await hold_template_of(tx, build.workspace_id)
    await job_store.get_job(tx, build.job_id, lock=True)
    await lock_workspace(tx, subject, build.workspace_id, "read")
    _require_manager(subject, template)
    await build_store.set_state(tx, build.id, state)


async def _load_for_managers(ctx: Context, subject: Subject, build_id: UUID) -> BuildView:
    view = await load_build(ctx, subject, build_id)
    workspace = await load_workspace(ctx, subject, view.build.workspace_id)
    _require_manager(subject, await ctx.db.read(template_store.get_template, workspace.workspace.template_id))
    return view


def _require_manager(subject: Subject, template: TemplateRow | None) -> None:
    if template is None or not may(subject, "update", template_resource(template)):
        raise NotFound


async def get_timings(ctx: Context, subject: Subject, build_id: UUID) -> WorkspaceBuildTimings:
    """How long every step took, Terraform's and the agents'."""
    view = await load_build(ctx, subject, build_id)
    return await ctx.db.read(_timings, view.job)


async def get_workspace_timings(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceBuildTimings:
    """Of the latest build."""
    view = await load_workspace(ctx, subject, workspace_id)
    return await ctx.db.read(_timings, view.latest.job)


async def _timings(tx: Tx, job: JobRow) -> WorkspaceBuildTimings:
    provisioner = await job_store.list_timings(tx, job.id)
    scripts = await script_store.list_script_timings(tx, job.id)
    agents = await agent_store.list_agents_of_jobs(tx, [job.id])
    return WorkspaceBuildTimings(
        provisioner_timings=[
            ProvisionerTiming(
                job_id=row.job_id,
                started_at=row.started_at,
                ended_at=row.ended_at,
                stage=cast("Any", row.stage),
                source=row.source,
                action=row.action,
                resource=row.resource,
            )
            for row in provisioner
        ],
        agent_script_timings=[
            AgentScriptTiming(
                started_at=run.started_at,
                ended_at=run.ended_at,
                exit_code=run.exit_code,
                stage=cast("Any", run.stage),
                status=run.status,
                display_name=run.display_name,
                workspace_agent_id=run.agent_id,
                workspace_agent_name=run.agent_name,
            )
            for run in scripts
        ],
        agent_connection_timings=[
            AgentConnectionTiming(
                started_at=agent.created_at,
                ended_at=agent.first_connected_at,
                stage=cast("Any", "connect"),
                workspace_agent_id=agent.id,
                workspace_agent_name=agent.name,
            )
            for agent in (detail.agent for detail in agents)
            if agent.first_connected_at is not None
        ],
    )


async def autofill_parameters(ctx: Context, subject: Subject, owner_id: UUID, template_id: UUID) -> Mapping[str, str]:
    """What a user gave last for each parameter the template still has (ephemeral ones are never offered again)."""
    require(subject, "read_personal", Resource("user", id=str(owner_id), owner_id=owner_id))
    return await ctx.db.read(_autofill, owner_id, template_id)


async def _autofill(tx: Tx, owner_id: UUID, template_id: UUID) -> dict[str, str]:
    template = await template_store.get_template(tx, template_id)
    if template is None:
        return {}
    definitions = await version_store.list_parameters(tx, template.active_version_id)
    offered = {item.name for item in definitions if not item.ephemeral}
    given = await build_store.list_last_parameters(tx, owner_id, template_id)
    return {name: value for name, value in given.items() if name in offered}
