"""Creating a workspace: the request's body, its values, the response. `new_workspaces.py` is the transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.api.workspaces.workspace_requests import CreateWorkspaceRequest
from coder.api.workspaces.workspaces import Workspace
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.services.workspaces.builds.build_input import optional_id, parameter_values
from coder.coderd.services.workspaces.builds.build_metrics import counted
from coder.coderd.services.workspaces.builds.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest, rules_of
from coder.coderd.services.workspaces.builds.queued_builds import QueuedBuild, present_queued
from coder.coderd.services.workspaces.new_workspaces import NAME_INDEX, CreateSpec, enqueue_first_build, name_taken
from coder.coderd.services.workspaces.workspace_view import LoadedPage, present_workspace
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.access.policy import Subject
from coder.domain.foundation.search import FieldRefusal
from coder.domain.workspaces.workspaces import AUTOMATIC_UPDATES, explain_ttl, parse_autostart

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def create_workspace(
    ctx: Context,
    subject: Subject,
    owner_id: UUID,
    body: CreateWorkspaceRequest,
    organization_id: UUID | None = None,
) -> Workspace:
    """Create a workspace and queue its first start build.

    `organization_id` comes from the path of the older route. Raises InvalidFields, Invalid, Forbidden, NotFound,
    Conflict (name taken).
    """
    spec = _read_spec(owner_id, body)
    request = BuildRequest(
        transition="start",
        initiator_id=subject.user_id,
        version_id=spec.version_id,
        parameters=spec.parameters,
        preset_id=spec.preset_id,
    )

    async def enqueue(request: BuildRequest) -> tuple[QueuedBuild, WorkspaceView]:
        return await ctx.db.run(
            enqueue_first_build, subject, spec, request, organization_id, rules_of(ctx), ctx.clock.now()
        )

    with constraint_refusals({NAME_INDEX: name_taken(spec.name)}), counted(ctx, request) as count:
        queued, view = await enqueue_with_values(ctx, request, BuildTarget(owner_id, spec.template_id), enqueue)
        count(queued.view.job.provisioner)
    response = present_workspace(ctx, view, LoadedPage.empty(), reveals=False)
    response.latest_build = present_queued(ctx, queued)
    return response


def _read_spec(owner_id: UUID, body: CreateWorkspaceRequest) -> CreateSpec:
    template_id, version_id = optional_id(body.template_id), optional_id(body.template_version_id)
    schedule = body.autostart_schedule or None
    if schedule is not None:
        reading = parse_autostart(schedule)
        if isinstance(reading, FieldRefusal):
            raise _refusal("Invalid Autostart Schedule.", reading)
    ttl_ms = body.ttl_ms if isinstance(body.ttl_ms, int) else None
    if refusal := explain_ttl(ttl_ms):
        raise _refusal("Invalid Workspace Time to Shutdown.", refusal)
    updates = body.automatic_updates or "never"
    if updates not in AUTOMATIC_UPDATES:
        refusal = FieldRefusal("automatic_updates", "Automatic updates must be always or never")
        raise _refusal("Invalid Workspace Automatic Updates setting.", refusal)
    return CreateSpec(
        owner_id=owner_id,
        name=body.name,
        template_id=template_id,
        version_id=version_id,
        autostart_schedule=schedule,
        ttl_ms=ttl_ms,
        automatic_updates=updates,
        parameters=parameter_values(body.rich_parameter_values),
        preset_id=optional_id(body.template_version_preset_id),
    )


def _refusal(message: str, reason: FieldRefusal) -> Invalid:
    return Invalid(message, validations=[(reason.field, reason.detail)])
