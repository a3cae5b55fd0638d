"""Workspaces: creating, reading, listing, renaming. Their settings are `workspace_settings.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.workspaces import CreateWorkspaceRequest, Workspace, WorkspacesResponse
from coder.base.ids import new_uuid
from coder.coderd.services import prebuilds
from coder.coderd.services.authorization import may
from coder.coderd.services.build_orders import BuildOrder, Rules, place_build
from coder.coderd.services.build_parameters import Target, place_with_values
from coder.coderd.services.builds import (
    Placed,
    given_id,
    given_values,
    present_new,
    read_placed,
    rules_of,
    strict_tags,
)
from coder.coderd.services.errors import Conflict, Forbidden, Gone, Invalid, InvalidFields, NotFound
from coder.coderd.services.resources import Loaded
from coder.coderd.services.workspace_access import (
    load_workspace,
    readers,
    template_resource,
    workspace_resource,
)
from coder.coderd.services.workspace_search import read_search
from coder.coderd.services.workspace_view import LoadedPage, load_page, present_workspace
from coder.coderd.store import template_versions as version_store
from coder.coderd.store import templates as template_store
from coder.coderd.store import workspaces as workspace_store
from coder.coderd.store.changes import notify_change
from coder.coderd.store.errors import IntegrityError
from coder.coderd.store.names import as_uuid
from coder.coderd.store.templates import TemplateRow
from coder.coderd.store.workspaces import Page, Readers, WorkspaceFilter, WorkspaceRow, WorkspaceView
from coder.domain.names import is_name
from coder.domain.policy import Resource, Subject, allowed_ids, decide, scope_allows
from coder.domain.search import FieldRefusal
from coder.domain.workspaces import AUTOMATIC_UPDATES, explain_ttl, next_start, parse_autostart

if TYPE_CHECKING:
    from coder.coderd.services.context import Context
    from coder.coderd.store.database import Tx

_NIL = UUID(int=0)
_NAME_INDEX = "ix_workspaces_owner_id_name_living"
_TAKEN = "This value is already in use and should be unique."
_NO_USE = (
    "Although you are able to view the template, you are unauthorized to create a workspace using it. Please contact "
    "an administrator about your permissions if you feel this is an error."
)


@dataclass(frozen=True, slots=True)
class Wish:
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
    wish = _read_wish(owner_id, body)
    order = BuildOrder(
        transition="start",
        initiator_id=subject.user_id,
        version_id=wish.version_id,
        given=wish.given,
        preset_id=wish.preset_id,
    )

    async def place(order: BuildOrder) -> tuple[Placed, WorkspaceView]:
        return await ctx.db.run(place_workspace, subject, wish, order, organization_id, rules_of(ctx), ctx.clock.now())

    try:
        placed, view = await place_with_values(ctx, order, Target(owner_id, wish.template_id), place)
    except IntegrityError as error:
        if _NAME_INDEX not in str(error):
            raise
        raise name_taken(wish.name) from error
    ctx.wake_provisioners()
    answer = present_workspace(ctx, view, LoadedPage(Loaded({}, {}, {}), {}))
    answer.latest_build = present_new(ctx, placed)
    return answer


def _read_wish(owner_id: UUID, body: CreateWorkspaceRequest) -> Wish:
    _check_name(body.name)
    template_id, version_id = given_id(body.template_id), given_id(body.template_version_id)
    if (template_id is None) == (version_id is None):
        tag = "required_without" if template_id is None else "excluded_with"
        raise InvalidFields(
            ("template_id", f'Validation failed for tag "{tag}" with value: "{template_id or _NIL}"'),
            ("template_version_id", f'Validation failed for tag "{tag}" with value: "{version_id or _NIL}"'),
        )
    updates = body.automatic_updates or "never"
    if updates not in AUTOMATIC_UPDATES:
        raise InvalidFields(("automatic_updates", f'Validation failed for tag "oneof" with value: "{updates}"'))
    schedule = body.autostart_schedule or None
    if schedule is not None:
        _refuse("Invalid Autostart Schedule.", parse_autostart(schedule))
    ttl_ms = body.ttl_ms if isinstance(body.ttl_ms, int) else None
    _refuse("Invalid Workspace Time to Shutdown.", explain_ttl(ttl_ms))
    return Wish(
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


def _check_name(name: str) -> None:
    if not is_name(name):
        raise InvalidFields(("name", f'Validation failed for tag "workspace_name" with value: "{name}"'))


def _refuse(message: str, reason: object) -> None:
    if isinstance(reason, FieldRefusal):
        raise Invalid(message, validations=[(reason.field, reason.detail)])


def name_taken(name: str) -> Conflict:
    """Another living workspace of the owner is called so."""
    return Conflict(f'Workspace "{name}" already exists.', validations=[("name", _TAKEN)])


async def place_workspace(
    tx: Tx,
    subject: Subject,
    wish: Wish,
    order: BuildOrder,
    organization_id: UUID | None,
    rules: Rules,
    now: datetime,
) -> tuple[Placed, WorkspaceView]:
    """The workspace and its first build, inside a transaction. Refusals as of `create_workspace`."""
    template = await _template(tx, wish)
    _check_template(subject, template, wish, organization_id)
    if await workspace_store.get_view_by_name(tx, wish.owner_id, wish.name) is not None:
        raise name_taken(wish.name)
    workspace = _new_row(wish, template, now)
    claimed = await prebuilds.claim(tx, workspace, order.preset_id)
    if claimed is None:
        await workspace_store.insert_workspace(tx, workspace)
    workspace = claimed or workspace
    build = await place_build(tx, subject, workspace, template, order, rules, now)
    view = await workspace_store.get_view(tx, workspace.id)
    if view is None:
        raise NotFound
    return await read_placed(tx, build.id, now), view


async def _template(tx: Tx, wish: Wish) -> TemplateRow:
    template_id = wish.template_id
    if wish.version_id is not None:
        version = await version_store.get_version(tx, wish.version_id)
        if version is None:
            raise Invalid(
                f'Template version "{wish.version_id}" doesn\'t exist.',
                validations=[("template_version_id", "template version not found")],
            )
        if version.template_id is None:
            raise Invalid(
                "Template version is not linked to a template.",
                validations=[("template_version_id", "template version is not linked to a template")],
            )
        template_id = version.template_id
    template = await template_store.get_template(tx, template_id or _NIL)
    if template is None:
        raise _no_template(template_id)
    return template


def _no_template(template_id: UUID | None) -> Invalid:
    return Invalid(f'Template "{template_id}" doesn\'t exist.', validations=[("template_id", "template not found")])


def _check_template(subject: Subject, template: TemplateRow, wish: Wish, organization_id: UUID | None) -> None:
    resource = template_resource(template)
    if not may(subject, "read", resource) or (
        organization_id is not None and organization_id != template.organization_id
    ):
        raise _no_template(template.id)
    new = Resource("workspace", owner_id=wish.owner_id, organization_id=template.organization_id)
    if not decide(subject, "create", new):
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
    if wish.autostart_schedule and not template.allow_user_autostart:
        raise Invalid(
            "Invalid Autostart Schedule.", validations=[("schedule", "the template does not allow autostart")]
        )


def _new_row(wish: Wish, template: TemplateRow, now: datetime) -> WorkspaceRow:
    # Whoever asks for nothing gets the template's default; 0 asks for "never stops by itself".
    chosen = wish.ttl_ms if wish.ttl_ms is not None and template.allow_user_autostop else template.default_ttl_ms
    return WorkspaceRow(
        id=new_uuid(),
        created_at=now,
        updated_at=now,
        owner_id=wish.owner_id,
        organization_id=template.organization_id,
        template_id=template.id,
        name=wish.name,
        deleted=False,
        autostart_schedule=wish.autostart_schedule,
        ttl_ms=chosen or None,
        last_used_at=now,
        dormant_at=None,
        deleting_at=None,
        next_start_at=next_start(wish.autostart_schedule, now, allowed_days=template.autostart_days),
        automatic_updates=wish.automatic_updates,
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
    found, page = await ctx.db.read(_list, which, readers(subject), now, limit, offset, strict_tags(ctx))
    return WorkspacesResponse(
        workspaces=[present_workspace(ctx, view, page) for view in found.views], count=found.count
    )


def _within_scope(subject: Subject, which: WorkspaceFilter) -> WorkspaceFilter | None:
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
    tx: Tx, which: WorkspaceFilter, who: Readers, now: datetime, limit: int, offset: int, strict: bool
) -> tuple[Page, LoadedPage]:
    found = await workspace_store.list_views(tx, which, who, now=now, limit=limit, offset=offset)
    return found, await load_page(tx, [view.latest for view in found.views], now, strict=strict)


async def rename_workspace(ctx: Context, subject: Subject, workspace_id: UUID, name: str) -> None:
    """Raises InvalidFields, Invalid (renames are off), Forbidden, Conflict (name taken)."""
    view = await load_workspace(ctx, subject, workspace_id)
    if not is_name(name):
        raise InvalidFields(("name", f'Validation failed for tag "username" with value: "{name}"'))
    row = view.workspace
    if name == row.name:
        return
    if not ctx.config.allow_workspace_renames:
        raise Invalid(
            "Workspace renames are not allowed.", "Enable --allow-workspace-renames to let people rename workspaces."
        )
    if not may(subject, "update", workspace_resource(row)):
        raise Forbidden
    try:
        await ctx.db.run(_rename, row, name, ctx.clock.now())
    except IntegrityError as error:
        raise Conflict(
            f'The workspace "{name}" already exists.',
            validations=[("name", "This value is already in use and should be unique.")],
        ) from error


async def _rename(tx: Tx, row: WorkspaceRow, name: str, now: datetime) -> None:
    await workspace_store.update_workspace(tx, row.id, name=name, updated_at=now)
    await notify_change(tx, "settings", owner_id=row.owner_id, workspace_id=row.id)
