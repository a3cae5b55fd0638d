"""Workspaces: creating, reading, listing, renaming. Their settings are `workspace_settings.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict, Forbidden, Gone, Invalid, NotFound
from coder.api.workspaces.workspace_requests import CreateWorkspaceRequest
from coder.api.workspaces.workspace_settings import UpdateWorkspaceRequest
from coder.api.workspaces.workspaces import Workspace, WorkspacesResponse
from coder.base.ids import new_uuid
from coder.coderd.services.access import owner_identity
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import (
    load_workspace,
    lock_workspace,
    readers,
    template_resource,
    workspace_resource,
)
from coder.coderd.services.agents.resource_view import LoadedResources
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.uniqueness import told_as
from coder.coderd.services.workspaces import prebuilds
from coder.coderd.services.workspaces.build_metrics import counted
from coder.coderd.services.workspaces.build_parameters import BuildTarget, enqueue_with_values
from coder.coderd.services.workspaces.build_requests import BuildRequest, BuildRules, enqueue_build
from coder.coderd.services.workspaces.builds import (
    QueuedBuild,
    given_id,
    given_values,
    present_new,
    read_queued_build,
    rules_of,
    strict_tags,
)
from coder.coderd.services.workspaces.workspace_search import read_search
from coder.coderd.services.workspaces.workspace_view import LoadedPage, load_page, present_workspace
from coder.coderd.store.engine.names import as_uuid
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import workspace_search as search_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.coderd.store.workspaces.workspace_search import WorkspacePage, WorkspaceReaders, WorkspaceSearch
from coder.coderd.store.workspaces.workspaces import WorkspaceRow, WorkspaceView
from coder.domain.access.policy import Resource, Subject, allowed_ids, decide, scope_allows
from coder.domain.foundation.search import FieldRefusal
from coder.domain.workspaces.workspaces import AUTOMATIC_UPDATES, explain_ttl, next_start, parse_autostart

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_NIL = UUID(int=0)
_NAME_INDEX = "ix_workspaces_owner_id_name_living"
_TAKEN = "This value is already in use and should be unique."
_NO_USE = (
    "Although you are able to view the template, you are unauthorized to create a workspace using it. Please contact "
    "an administrator about your permissions if you feel this is an error."
)


@dataclass(frozen=True, slots=True)
class CreateSpec:
    """A checked request for a new workspace."""

    owner_id: UUID
    name: str
    template_id: UUID | None
    version_id: UUID | None
    autostart_schedule: str | None
    ttl_ms: int | None
    "None: the template's default."
    automatic_updates: str
    given: dict[str, str]
    preset_id: UUID | None


async def create_workspace(
    ctx: Context,
    subject: Subject,
    owner_id: UUID,
    body: CreateWorkspaceRequest,
    organization_id: UUID | None = None,
) -> Workspace:
    """A new workspace and its first start build.

    `organization_id` is the one named in the path of the older route. Raises InvalidFields, Invalid, Forbidden,
    NotFound, Conflict (name taken).
    """
    spec = _read_spec(owner_id, body)
    request = BuildRequest(
        transition="start",
        initiator_id=subject.user_id,
        version_id=spec.version_id,
        given=spec.given,
        preset_id=spec.preset_id,
    )

    async def enqueue(request: BuildRequest) -> tuple[QueuedBuild, WorkspaceView]:
        return await ctx.db.run(enqueue_first, subject, spec, request, organization_id, rules_of(ctx), ctx.clock.now())

    with told_as({_NAME_INDEX: name_taken(spec.name)}), counted(ctx, request) as count:
        queued, view = await enqueue_with_values(ctx, request, BuildTarget(owner_id, spec.template_id), enqueue)
        count(queued.view.job.provisioner)
    answer = present_workspace(ctx, view, LoadedPage(LoadedResources({}, {}, {}), {}))
    answer.latest_build = present_new(ctx, queued)
    return answer


def _read_spec(owner_id: UUID, body: CreateWorkspaceRequest) -> CreateSpec:
    template_id, version_id = given_id(body.template_id), given_id(body.template_version_id)
    schedule = body.autostart_schedule or None
    if schedule is not None:
        _refuse("Invalid Autostart Schedule.", parse_autostart(schedule))
    ttl_ms = body.ttl_ms if isinstance(body.ttl_ms, int) else None
    _refuse("Invalid Workspace Time to Shutdown.", explain_ttl(ttl_ms))
    updates = body.automatic_updates or "never"
    if updates not in AUTOMATIC_UPDATES:
        wrong = FieldRefusal("automatic_updates", "Automatic updates must be always or never")
        _refuse("Invalid Workspace Automatic Updates setting.", wrong)
    return CreateSpec(
        owner_id=owner_id,
        name=body.name,
        template_id=template_id,
        version_id=version_id,
        autostart_schedule=schedule,
        ttl_ms=ttl_ms,
        automatic_updates=updates,
        given=given_values(body.rich_parameter_values),
        preset_id=given_id(body.template_version_preset_id),
    )


def _refuse(message: str, reason: object) -> None:
    if isinstance(reason, FieldRefusal):
        raise Invalid(message, validations=[(reason.field, reason.detail)])


def name_taken(name: str) -> Conflict:
    """Another living workspace of the owner is called so."""
    return Conflict(f'Workspace "{name}" already exists.', validations=[("name", _TAKEN)])


async def enqueue_first(
    tx: Tx,
    subject: Subject,
    spec: CreateSpec,
    request: BuildRequest,
    organization_id: UUID | None,
    rules: BuildRules,
    now: datetime,
) -> tuple[QueuedBuild, WorkspaceView]:
    """The workspace and its first build, inside a transaction. Refusals as of `create_workspace`."""
    template = await _template(tx, spec)
    _check_template(subject, template, spec, organization_id)
    await owner_identity.require_member(tx, subject, spec.owner_id, template.organization_id)
    if await workspace_store.get_view_by_name(tx, spec.owner_id, spec.name) is not None:
        raise name_taken(spec.name)
    workspace = _new_row(spec, template, now)
    claimed = await prebuilds.claim(tx, workspace, request.preset_id)
    if claimed is None:
        await workspace_store.insert_workspace(tx, workspace)
    workspace = claimed or workspace
    build = await enqueue_build(tx, subject, workspace, template, request, rules, now)
    view = await workspace_store.get_view(tx, workspace.id)
    if view is None:
        raise NotFound
    return await read_queued_build(tx, build.id, rules, now), view


async def _template(tx: Tx, spec: CreateSpec) -> TemplateRow:
    template_id = spec.template_id
    if spec.version_id is not None:
        version = await version_store.get_version(tx, spec.version_id)
        if version is None:
            raise Invalid(
                f'Template version "{spec.version_id}" doesn\'t exist.',
                validations=[("template_version_id", "template not found")],
            )
        if version.template_id is None:
            raise Invalid(
                "Template version is not linked to a template.",
                validations=[("template_version_id", "template version is not linked to a template")],
            )
        if version.archived:
            raise Invalid(
                "Archived template versions cannot be used to make a workspace.",
                validations=[("template_version_id", "template version archived")],
            )
        template_id = version.template_id
    # Held: else one that is being deleted, or shut to the caller, would get a workspace after that.
    template = await template_store.get_template(tx, template_id or _NIL, hold=True)
    if template is None:
        raise _no_template(template_id)
    return template


def _no_template(template_id: UUID | None) -> Invalid:
    return Invalid(f'Template "{template_id}" doesn\'t exist.', validations=[("template_id", "template not found")])


def _check_template(subject: Subject, template: TemplateRow, spec: CreateSpec, organization_id: UUID | None) -> None:
    # Whoever saw it while it was there is told that it is gone (recorded): more of it is not shown here.
    resource = template_resource(replace(template, deleted=False))
    if not may(subject, "read", resource) or (
        organization_id is not None and organization_id != template.organization_id
    ):
        raise _no_template(template.id)
    new = Resource("workspace", owner_id=spec.owner_id, organization_id=template.organization_id)
    # Those of the system user are made by the server alone: whoever asks for the preset is given one.
    if spec.owner_id == PREBUILDS_USER_ID or not decide(subject, "create", new):
        raise Forbidden
    if template.deleted:
        raise NotFound(f'Template "{template.name}" has been deleted!')
    if not may(subject, "use", resource):
        raise Forbidden(f'Unauthorized access to use the template "{template.name}".', _NO_USE)
    if template.deprecated:
        raise Invalid(
            f'Template "{template.name}" has been deprecated, and cannot be used to create a new workspace.',
            template.deprecated,
        )
    if spec.autostart_schedule and not template.allow_user_autostart:
        raise Invalid(
            "Invalid Autostart Schedule.", validations=[("schedule", "the template does not allow autostart")]
        )


def _new_row(spec: CreateSpec, template: TemplateRow, now: datetime) -> WorkspaceRow:
    # Whoever asks for nothing gets the template's default; 0 asks for "never stops by itself".
    chosen = spec.ttl_ms if spec.ttl_ms is not None and template.allow_user_autostop else template.default_ttl_ms
    return WorkspaceRow(
        id=new_uuid(),
        created_at=now,
        updated_at=now,
        owner_id=spec.owner_id,
        organization_id=template.organization_id,
        template_id=template.id,
        name=spec.name,
        deleted=False,
        autostart_schedule=spec.autostart_schedule,
        ttl_ms=chosen or None,
        last_used_at=now,
        dormant_at=None,
        deleting_at=None,
        next_start_at=next_start(spec.autostart_schedule, now, allowed_days=template.autostart_days),
        automatic_updates=spec.automatic_updates,
        favorite=False,
        user_acl={},
        group_acl={},
        latest_build_id=None,
    )


async def get_workspace(
    ctx: Context, subject: Subject, workspace_id: UUID, *, include_deleted: bool = False
) -> Workspace:
    """Raises NotFound, Gone (deleted, and not asked for)."""
    view = await load_workspace(ctx, subject, workspace_id)
    if view.workspace.deleted and not include_deleted:
        raise Gone(
            f'Workspace "{workspace_id}" was deleted, you can view this workspace by specifying '
            "'?include_deleted=true' and trying again."
        )
    return await present(ctx, view)


async def get_workspace_by_name(
    ctx: Context, subject: Subject, owner_id: UUID, name: str, *, include_deleted: bool = False
) -> Workspace:
    """Raises NotFound."""
    view = await ctx.db.read(workspace_store.get_view_by_name, owner_id, name, include_deleted=include_deleted)
    if view is None or not may(subject, "read", workspace_resource(view.workspace)):
        raise NotFound
    return await present(ctx, view)


async def present(ctx: Context, view: WorkspaceView) -> Workspace:
    """One workspace with everything in it."""
    page = await ctx.db.read(load_page, [view.latest], ctx.clock.now(), strict=strict_tags(ctx))
    return present_workspace(ctx, view, page)


async def list_workspaces(
    ctx: Context, subject: Subject, query: str, *, limit: int = 0, offset: int = 0
) -> WorkspacesResponse:
    """The workspaces `subject` may see and `query` asks for. Raises Invalid for a query that cannot be read."""
    which = _within_scope(subject, await read_search(ctx, subject, query))
    if which is None:
        return WorkspacesResponse(workspaces=[], count=0)
    now = ctx.clock.now()
    seen = readers(subject, dormant=which.dormant)
    found, page = await ctx.db.read(_list, which, seen, now, limit, offset, strict_tags(ctx))
    return WorkspacesResponse(
        workspaces=[present_workspace(ctx, view, page) for view in found.views], count=found.count
    )


def _within_scope(subject: Subject, which: WorkspaceSearch) -> WorkspaceSearch | None:
    """The filter narrowed to what the caller's key may read; None when that is nothing."""
    if subject.kind != "system" and not scope_allows(subject, "read", "workspace"):
        return None
    listed = allowed_ids(subject, "workspace")
    if listed is None:
        return which
    allowed = {found for found in map(as_uuid, listed) if found is not None}
    ids = [key for key in which.ids if key in allowed] if which.ids else sorted(allowed)
    return replace(which, ids=ids) if ids else None


async def _list(
    tx: Tx, which: WorkspaceSearch, who: WorkspaceReaders, now: datetime, limit: int, offset: int, strict: bool
) -> tuple[WorkspacePage, LoadedPage]:
    found = await search_store.list_views(tx, which, who, now=now, limit=limit, offset=offset)
    return found, await load_page(tx, [view.latest for view in found.views], now, strict=strict)


async def rename_workspace(ctx: Context, subject: Subject, workspace_id: UUID, wanted: UpdateWorkspaceRequest) -> None:
    """Raises InvalidFields, Invalid (renames are off), Forbidden, Conflict (name taken)."""

    async def rename(tx: Tx) -> None:
        row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
        check_request(wanted, {"name": row.name})
        if wanted.name == row.name:
            return
        if not ctx.config.allow_workspace_renames:
            raise Invalid("Workspace renames are not allowed.")
        if not may(subject, "update", workspace_resource(row)):
            raise Forbidden
        await workspace_store.update_workspace(tx, row.id, name=str(wanted.name))
        await notify_change(tx, "settings", owner_id=row.owner_id, workspace_id=row.id)

    taken = Conflict(f'The workspace "{wanted.name}" already exists.', validations=[("name", _TAKEN)])
    with told_as({_NAME_INDEX: taken}):
        await ctx.db.run(rename)
