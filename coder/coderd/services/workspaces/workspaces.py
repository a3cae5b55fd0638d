"""Workspaces: reading and listing.

Creating is `workspace_creation.py`; settings, the name among them, are `workspace_settings.py`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Gone, NotFound
from coder.api.workspaces.workspaces import Workspace, WorkspacesResponse
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import (
    load_workspace,
    readers,
    reveals_values,
    workspace_resource,
)
from coder.coderd.services.workspaces.workspace_search import read_search
from coder.coderd.services.workspaces.workspace_view import LoadedPage, load_page, present_workspace, strict_tags
from coder.coderd.store.engine.names import as_uuid
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces import workspace_search as search_store
from coder.coderd.store.workspaces.workspace_search import WorkspacePage, WorkspaceReaders, WorkspaceSearch
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.access.policy import Subject, allowed_ids, scope_allows

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def get_workspace(
    ctx: Context, subject: Subject, workspace_id: UUID, *, include_deleted: bool = False
) -> Workspace:
    """Return a workspace. Raises NotFound, Gone (deleted, and `include_deleted` is off)."""
    view = await load_workspace(ctx, subject, workspace_id)
    if view.workspace.deleted and not include_deleted:
        raise Gone(
            f'Workspace "{workspace_id}" was deleted, you can view this workspace by specifying '
            "'?include_deleted=true' and trying again."
        )
    return await present(ctx, subject, view)


async def get_workspace_by_name(
    ctx: Context, subject: Subject, owner_id: UUID, name: str, *, include_deleted: bool = False
) -> Workspace:
    """Return a workspace by owner and name. Raises NotFound."""
    view = await ctx.db.read(system_workspaces.get_view_by_name, owner_id, name, include_deleted=include_deleted)
    if view is None or not may(subject, "read", workspace_resource(view.workspace)):
        raise NotFound
    return await present(ctx, subject, view)


async def present(ctx: Context, subject: Subject, view: WorkspaceView) -> Workspace:
    """Load and return the API's shape of one workspace, as the caller may see it."""
    page = await ctx.db.read(load_page, [view.latest], ctx.clock.now(), strict=strict_tags(ctx))
    return present_workspace(ctx, view, page, reveals=reveals_values(subject, view.workspace))


async def list_workspaces(
    ctx: Context, subject: Subject, query: str, *, limit: int = 0, offset: int = 0
) -> WorkspacesResponse:
    """Return the workspaces that match `query` and that `subject` may read. Raises Invalid for an invalid query."""
    search = _within_scope(subject, await read_search(ctx, subject, query))
    if search is None:
        return WorkspacesResponse(workspaces=[], count=0)
    now = ctx.clock.now()
    visible = readers(subject, dormant=search.dormant)
    result, page = await ctx.db.read(_list, search, visible, now, limit, offset, strict_tags(ctx))
    workspaces = [
        present_workspace(ctx, view, page, reveals=reveals_values(subject, view.workspace)) for view in result.views
    ]
    return WorkspacesResponse(workspaces=workspaces, count=result.count)


def _within_scope(subject: Subject, search: WorkspaceSearch) -> WorkspaceSearch | None:
    """Narrow the filter to the workspaces the caller's key may read; None if that leaves nothing."""
    if subject.kind != "system" and not scope_allows(subject, "read", "workspace"):
        return None
    listed_ids = allowed_ids(subject, "workspace")
    if listed_ids is None:
        return search
    allowed = {workspace_id for workspace_id in map(as_uuid, listed_ids) if workspace_id is not None}
    ids = [key for key in search.ids if key in allowed] if search.ids else sorted(allowed)
    return replace(search, ids=ids) if ids else None


async def _list(
    tx: Tx, search: WorkspaceSearch, visible: WorkspaceReaders, now: datetime, limit: int, offset: int, strict: bool
) -> tuple[WorkspacePage, LoadedPage]:
    result = await search_store.list_views(tx, search, visible, now=now, limit=limit, offset=offset)
    return result, await load_page(tx, [view.latest for view in result.views], now, strict=strict)
