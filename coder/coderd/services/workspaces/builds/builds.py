"""Builds of workspaces: reading, listing, their parameters and resources.

Creating a build is `build_creation.py`, canceling it `build_cancellation.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import (
    Invalid,
    NotFound,
)
from coder.api.templates.parameters import WorkspaceBuildParameter
from coder.api.workspaces.builds import WorkspaceBuild, WorkspaceResource
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import (
    load_workspace,
    reveals_values,
    workspace_resource,
)
from coder.coderd.services.agents.resource_view import load_resources
from coder.coderd.services.workspaces.workspace_view import (
    LoadedPage,
    load_page,
    present_build,
    present_build_resources,
    strict_tags,
)
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds, system_workspaces
from coder.coderd.store.workspaces.builds import BuildView
from coder.domain.access.policy import Subject
from coder.domain.foundation.search import int_fault
from coder.domain.workspaces.builds import is_active

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_UNKNOWN_BUILD = 'Workspace "{name}" Build {number} does not exist.'


async def get_build(ctx: Context, subject: Subject, build_id: UUID) -> WorkspaceBuild:
    """Return a build. Raises NotFound."""
    build, reveals = await _load(ctx, subject, build_id)
    return await _present(ctx, build, reveals=reveals)


async def get_build_by_number(
    ctx: Context, subject: Subject, owner_id: UUID, name: str, number_text: str
) -> WorkspaceBuild:
    """Return a build by owner, workspace name and number. Raises NotFound, Invalid."""
    fault = int_fault(number_text, 32)
    refusal = Invalid("Failed to parse build number as integer.", fault) if fault else None
    # For the user's own workspaces a bad number is refused before the workspace is looked up (recorded). For others'
    # that would reveal which users exist.
    if refusal and owner_id == subject.user_id:
        raise refusal
    view = await ctx.db.read(system_workspaces.get_view_by_name, owner_id, name)
    if view is None:
        raise NotFound
    require(subject, "read", workspace_resource(view.workspace))
    if refusal:
        raise refusal
    build_view = await ctx.db.read(system_builds.get_view_by_number, view.workspace.id, int(number_text))
    if build_view is None:
        raise NotFound(_UNKNOWN_BUILD.format(name=view.workspace.name, number=int(number_text)))
    return await _present(ctx, build_view, reveals=reveals_values(subject, view.workspace))


@dataclass(frozen=True, slots=True)
class BuildPage:
    """Selection of a workspace's builds to list."""

    since: datetime | None = None
    after: UUID | None = None
    limit: int = 0
    offset: int = 0


async def list_builds(ctx: Context, subject: Subject, workspace_id: UUID, selection: BuildPage) -> list[WorkspaceBuild]:
    """Return the workspace's builds, newest first. Raises NotFound."""
    reveals = reveals_values(subject, (await load_workspace(ctx, subject, workspace_id)).workspace)
    if selection.after is not None:
        earlier = await ctx.db.read(system_builds.get_build, selection.after)
        if earlier is None or earlier.workspace_id != workspace_id:
            raise Invalid(f'Record at "after_id" ("{selection.after}") does not exist.')
    now, strict = ctx.clock.now(), strict_tags(ctx)
    views, page = await ctx.db.read(_list, workspace_id, selection, now, strict)
    return [present_build(ctx, view, page, reveals=reveals) for view in views]


async def _list(
    tx: Tx, workspace_id: UUID, selection: BuildPage, now: datetime, strict: bool
) -> tuple[list[BuildView], LoadedPage]:
    views = await build_store.list_views(
        tx, workspace_id, since=selection.since, after=selection.after, limit=selection.limit, offset=selection.offset
    )
    return views, await load_page(tx, views, now, strict=strict)


async def _present(ctx: Context, view: BuildView, *, reveals: bool) -> WorkspaceBuild:
    page = await ctx.db.read(load_page, [view], ctx.clock.now(), strict=strict_tags(ctx))
    return present_build(ctx, view, page, reveals=reveals)


async def load_build(ctx: Context, subject: Subject, build_id: UUID) -> BuildView:
    """Return a build. Raises NotFound when the user may not read its workspace."""
    return (await _load(ctx, subject, build_id))[0]


async def _load(ctx: Context, subject: Subject, build_id: UUID) -> tuple[BuildView, bool]:
    """Return a build, and whether the caller may see values inside its workspace. Raises NotFound."""
    view = await ctx.db.read(system_builds.get_view, build_id)
    if view is None:
        raise NotFound
    workspace = await load_workspace(ctx, subject, view.build.workspace_id)
    return view, reveals_values(subject, workspace.workspace)


async def get_parameters(ctx: Context, subject: Subject, build_id: UUID) -> list[WorkspaceBuildParameter]:
    """Return the parameter values of a build. Raises NotFound."""
    view = await load_build(ctx, subject, build_id)
    values = await ctx.db.read(build_store.list_parameters, view.build.id)
    return [WorkspaceBuildParameter(name=name, value=value) for name, value in values.items()]


async def get_resources(ctx: Context, subject: Subject, build_id: UUID) -> list[WorkspaceResource]:
    """Return the build's resources. Raises Invalid while the job runs."""
    view, reveals = await _load(ctx, subject, build_id)
    if is_active(view.job.status):
        raise Invalid("Job hasn't completed!")
    loaded = await ctx.db.read(load_resources, [view.job.id])
    return present_build_resources(ctx, view, loaded, reveals=reveals)
