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
    workspace_resource,
)
from coder.coderd.services.workspaces.workspace_search import read_search
from coder.coderd.services.workspaces.workspace_view import LoadedPage, load_page, present_workspace, strict_tags
from coder.coderd.store.engine.names import as_uuid
from coder.coderd.store.workspaces import workspace_search as search_store
from coder.coderd.store.workspaces import workspaces as workspace_store
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
    return await present(ctx, view)


async def get_workspace_by_name(
    ctx: Context, subject: Subject, owner_id: UUID, name: str, *, include_deleted: bool = False
) -> Workspace:
    """Return a workspace by owner and name. Raises NotFound."""
    view = await ctx.db.read(workspace_store.get_view_by_name, owner_id, name, include_deleted=include_deleted)
    if view is None or not may(subject, "read", workspace_resource(view.workspace)):
        raise NotFound
    return await present(ctx, view)


async def present(ctx: Context, view: WorkspaceView) -> Workspace:
    """Load and return the API's shape of one workspace."""
    page = await ctx.db.read(load_page, [view.latest], ctx.clock.now(), strict=strict_tags(ctx))
    return present_workspace(ctx, view, page)


async def list_workspaces(
    ctx: Context, subject: Subject, query: str, *, limit: int = 0, offset: int = 0
) -> WorkspacesResponse:
    """Return the workspaces that match `query` and that `subject` may read. Raises Invalid for an invalid query."""
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
    """Narrow the filter to the workspaces the caller's key may read; None if that leaves nothing."""
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
