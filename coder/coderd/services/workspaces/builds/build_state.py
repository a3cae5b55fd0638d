"""Terraform state of a build, read and replaced by template managers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import (
    NotFound,
)
from coder.api.workspaces.build_requests import UpdateWorkspaceBuildStateRequest
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.token_masking import mask_in_bytes
from coder.coderd.services.access.workspace_access import (
    hold_template_of,
    load_workspace,
    lock_workspace,
    reveals_values,
    template_resource,
)
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.workspaces.builds.build_input import read_state
from coder.coderd.services.workspaces.builds.builds import load_build
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds
from coder.coderd.store.workspaces.builds import BuildRow, BuildView
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def get_state(ctx: Context, subject: Subject, build_id: UUID) -> bytes:
    """Return the Terraform state. It includes secrets, so only template managers may read it (others get NotFound).

    The owner's session token is masked for a manager who may not connect to the workspace.
    """
    view = await _load_for_managers(ctx, subject, build_id)
    await refuse_applications(ctx, subject, "agent_token")
    workspace = await load_workspace(ctx, subject, view.build.workspace_id)
    state = await ctx.db.read(system_builds.get_state, view.build.id)
    if reveals_values(subject, workspace.workspace):
        return state
    return await ctx.db.read(mask_in_bytes, state)


async def put_state(ctx: Context, subject: Subject, build_id: UUID, request: UpdateWorkspaceBuildStateRequest) -> None:
    """Replace the Terraform state. Raises NotFound, Invalid."""
    view = await _load_for_managers(ctx, subject, build_id)
    check_request(request)
    await ctx.db.run(_put_state, subject, view.build, read_state(request))


async def _put_state(tx: Tx, subject: Subject, build: BuildRow, state: bytes) -> None:
    template = await hold_template_of(tx, build.workspace_id)
    await system_jobs.get_job(tx, build.job_id, lock=True)
    await lock_workspace(tx, subject, build.workspace_id, "read")
    _require_manager(subject, template)
    await build_store.set_state(tx, build.id, state)


async def _load_for_managers(ctx: Context, subject: Subject, build_id: UUID) -> BuildView:
    view = await load_build(ctx, subject, build_id)
    workspace = await load_workspace(ctx, subject, view.build.workspace_id)
    _require_manager(subject, await ctx.db.read(system_templates.get_template, workspace.workspace.template_id))
    return view


def _require_manager(subject: Subject, template: TemplateRow | None) -> None:
    if template is None or not may(subject, "update", template_resource(template)):
        raise NotFound
