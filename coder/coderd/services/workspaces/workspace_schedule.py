"""Schedule of a workspace: autostart, time to live, deadline of the running build.

Every change notifies the watchers in the same transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import BAD_BODY, Conflict, Invalid
from coder.api.workspaces.workspace_settings import (
    ExtendWorkspaceRequest,
    UpdateWorkspaceAutostartRequest,
    UpdateWorkspaceTTLRequest,
)
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import load_workspace, lock_workspace, workspace_resource
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.templates.rollout_offers import find_offered_version
from coder.coderd.services.workspaces.workspace_settings import edit_workspace
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.domain.access.policy import Subject
from coder.domain.foundation.search import explain_time, parse_rfc3339
from coder.domain.foundation.zero import ZERO_TIME
from coder.domain.templates.parameters import resolve_parameters
from coder.domain.workspaces.workspaces import (
    explain_deadline,
    next_start,
)

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def set_autostart(
    ctx: Context, subject: Subject, workspace_id: UUID, request: UpdateWorkspaceAutostartRequest
) -> None:
    """Set the autostart schedule; an empty schedule clears it. Raises Invalid, NotFound, Forbidden."""
    await ctx.db.run(_set_autostart, subject, workspace_id, request, ctx.clock.now())


async def _set_autostart(
    tx: Tx, subject: Subject, workspace_id: UUID, request: UpdateWorkspaceAutostartRequest, now: datetime
) -> None:
    row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    template = await system_templates.get_template(tx, row.template_id)
    days = template.autostart_days if template else 127
    check_request(request)
    schedule = request.schedule or None
    if schedule and template is not None and not template.allow_user_autostart:
        raise Invalid("Autostart is not allowed for workspaces using this template.")
    following = next_start(schedule, now, allowed_days=days)
    require(subject, "update", workspace_resource(row))  # readers hear first what is wrong with the request
    await edit_workspace(tx, row, autostart_schedule=schedule, next_start_at=following)


async def set_ttl(ctx: Context, subject: Subject, workspace_id: UUID, request: UpdateWorkspaceTTLRequest) -> None:
    """Set the time to live. None or 0 clears it, and the running build's deadline up to the template's latest one."""
    await ctx.db.run(_set_ttl, subject, workspace_id, request, ctx.clock.now())


async def _set_ttl(
    tx: Tx, subject: Subject, workspace_id: UUID, request: UpdateWorkspaceTTLRequest, now: datetime
) -> None:
    view = await lock_workspace(tx, subject, workspace_id, "read")
    template = await system_templates.get_template(tx, view.workspace.template_id)
    if template is not None and not template.allow_user_autostop:
        raise Invalid("Error updating workspace time until shutdown.", "Custom autostop TTL is not allowed.")
    check_request(request)
    require(subject, "update", workspace_resource(view.workspace))
    await edit_workspace(tx, view.workspace, ttl_ms=request.ttl_ms or None)
    if not request.ttl_ms and view.latest.build.transition == "start":
        # Clearing the user's own time to live does not lift the template's limit.
        latest = view.latest.build.max_deadline
        await build_store.update_build(tx, view.latest.build.id, deadline=latest, updated_at=now)


async def extend(ctx: Context, subject: Subject, workspace_id: UUID, request: ExtendWorkspaceRequest) -> None:
    """Move the deadline of a running workspace, later or sooner.

    Raises Conflict (not running, or it has no deadline), Invalid (no time, too soon, too late), Forbidden.
    """
    await ctx.db.run(_extend, subject, workspace_id, request, ctx.clock.now())


async def _extend(tx: Tx, subject: Subject, workspace_id: UUID, request: ExtendWorkspaceRequest, now: datetime) -> None:
    view = await lock_workspace(tx, subject, workspace_id, "read")
    if request.deadline == "":  # for the rules the same as no deadline, but no time for a decoder
        raise Invalid(BAD_BODY, explain_time(""))
    check_request(request)
    deadline = parse_rfc3339(request.deadline or "") or ZERO_TIME
    build, status = view.latest.build, view.latest.job.status
    if build.transition != "start":
        raise Conflict(f"Workspace must be started, current status: {build.transition}")
    if status != "succeeded":
        raise Conflict(
            "Workspace is still building!" if status in {"pending", "running"} else "Workspace build failed!"
        )
    if build.deadline is None:
        raise Conflict("Workspace shutdown is manual.")
    reason = explain_deadline(now, deadline, build.max_deadline)
    if reason is not None:
        raise Invalid(reason)
    require(subject, "update", workspace_resource(view.workspace))
    await build_store.update_build(tx, view.latest.build.id, deadline=deadline, updated_at=now)
    await notify_change(tx, "settings", owner_id=view.workspace.owner_id, workspace_id=workspace_id)


async def can_autostart(ctx: Context, subject: Subject, workspace_id: UUID) -> bool:
    """Return False if the version of an automatic update has parameters without a value (`parameter_mismatch`)."""
    view = await load_workspace(ctx, subject, workspace_id)
    updates = view.workspace.automatic_updates == "always" or view.template.require_active_version
    template = await ctx.db.read(system_templates.get_template, view.workspace.template_id) if updates else None
    if template is None:
        return True
    current, row = view.latest.build.template_version_id, view.workspace
    version_id = await ctx.db.read(find_offered_version, template, row.id, row.owner_id, current)
    if current == version_id:
        return True
    definitions = await ctx.db.read(version_store.list_parameters, version_id)
    previous = await ctx.db.read(build_store.list_parameters, view.latest.build.id)
    resolution = resolve_parameters(definitions, previous=previous, given={}, preset={}, first_build=False)
    return not resolution.refusals
