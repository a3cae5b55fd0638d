"""Workspaces and builds as JSON: converts rows to the API's shapes.

A page of any length costs a fixed number of statements: its views, then `load_page` (resources, agents, apps, scripts,
and two more only while some job is pending).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.provisioning.jobs import MatchedProvisioners
from coder.api.workspaces.builds import BuildReason, WorkspaceBuild, WorkspaceResource
from coder.api.workspaces.workspaces import SharedWorkspaceActor, Workspace, WorkspaceHealth
from coder.coderd.services.agents.agent_view import health_of, present_status, view_context
from coder.coderd.services.agents.resource_view import LoadedResources, load_resources, present_resources
from coder.coderd.services.provisioning.jobs import load_queue_positions, present_job
from coder.coderd.store.access import acls as acl_store
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.workspaces.builds import BuildView
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.provisioning.queue import NO_POSITION, QueuePosition

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """Rows that belong to the jobs of a page."""

    resources: LoadedResources
    queue_places: dict[UUID, QueuePosition]
    shows_costs: bool = False
    "Whether any group has an allowance; otherwise all builds are shown with cost 0 (recorded)."

    @classmethod
    def empty(cls) -> LoadedPage:
        """Return the page of jobs that were queued just now: no resources, no places in the queue yet."""
        return cls(LoadedResources({}, {}, {}), {})


async def load_page(tx: Tx, views: Sequence[BuildView], now: datetime, *, strict: bool) -> LoadedPage:
    """Load everything shown inside these builds."""
    # A job that has not ended has no resources yet.
    ended = [view.job.id for view in views if view.job.completed_at is not None]
    resources = await load_resources(tx, ended)
    places = await load_queue_positions(tx, [view.job for view in views], now, strict=strict)
    return LoadedPage(resources, places, await group_store.any_allowance(tx))


def strict_tags(ctx: Context) -> bool:
    """Return whether untagged jobs run on untagged daemons only (`--provisioner-strict-tags`)."""
    return ctx.config.provisioner_strict_tags


def present_build(ctx: Context, view: BuildView, page: LoadedPage, *, reveals: bool) -> WorkspaceBuild:
    """Return the API's shape of a build; `reveals` is `reveals_values` of its workspace."""
    build, job = view.build, view.job
    return WorkspaceBuild(
        id=build.id,
        created_at=build.created_at,
        updated_at=build.updated_at,
        workspace_id=build.workspace_id,
        workspace_name=view.workspace_name,
        workspace_owner_id=view.owner_id,
        workspace_owner_name=view.owner_username,
        workspace_owner_avatar_url=view.owner_avatar_url or UNSET,
        template_version_id=build.template_version_id,
        template_version_name=view.template_version_name,
        build_number=build.build_number,
        transition=build.transition,
        initiator_id=build.initiator_id,
        initiator_name=view.initiator_username,
        job=present_job(job, page.queue_places.get(job.id, NO_POSITION)),
        reason=cast("BuildReason", build.reason),
        resources=present_build_resources(ctx, view, page.resources, reveals=reveals),
        deadline=build.deadline,
        max_deadline=build.max_deadline,
        status=view.status,
        daily_cost=build.daily_cost if page.shows_costs else 0,
        matched_provisioners=MatchedProvisioners(count=0, available=0),
        template_version_preset_id=build.template_version_preset_id,
        has_ai_task=build.has_ai_task if build.has_ai_task is not None else UNSET,
        has_external_agent=build.has_external_agent if build.has_external_agent is not None else UNSET,
    )


def present_build_resources(
    ctx: Context, view: BuildView, loaded: LoadedResources, *, reveals: bool
) -> list[WorkspaceResource]:
    """Return the API's shape of a build's resources."""
    context = view_context(ctx, view.workspace_name, view.owner_username, reveals=reveals)
    return present_resources(loaded, view.job.id, context)


def present_workspace(ctx: Context, view: WorkspaceView, page: LoadedPage, *, reveals: bool) -> Workspace:
    """Return the API's shape of a workspace with its latest build; `reveals` is `reveals_values` of it."""
    row, template = view.workspace, view.template
    latest = present_build(ctx, view.latest, page, reveals=reveals)
    return Workspace(
        id=row.id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        owner_id=row.owner_id,
        owner_name=view.owner_username,
        owner_avatar_url=view.latest.owner_avatar_url,
        organization_id=row.organization_id,
        organization_name=view.organization_name,
        template_id=row.template_id,
        template_name=template.name,
        template_display_name=template.display_name,
        template_icon=template.icon,
        template_allow_user_cancel_workspace_jobs=template.allow_user_cancel_workspace_jobs,
        template_active_version_id=template.active_version_id,
        template_require_active_version=template.require_active_version,
        template_use_classic_parameter_flow=template.use_classic_parameter_flow,
        latest_build=latest,
        latest_app_status=present_status(view.app_status) if view.app_status else None,
        outdated=latest.template_version_id != template.active_version_id,
        name=row.name,
        autostart_schedule=row.autostart_schedule or UNSET,
        ttl_ms=_whole_minutes(row.ttl_ms) if row.ttl_ms is not None else UNSET,
        last_used_at=row.last_used_at,
        deleting_at=row.deleting_at,
        dormant_at=row.dormant_at,
        health=_health(ctx, view, page),
        automatic_updates=row.automatic_updates,
        allow_renames=ctx.config.allow_workspace_renames,
        favorite=row.favorite,
        next_start_at=row.next_start_at,
        is_prebuild=row.owner_id == PREBUILDS_USER_ID,
        task_id=view.task_id,
        shared_with=_shared_with(view) or UNSET,
    )


def _whole_minutes(milliseconds: int) -> int:
    return milliseconds - milliseconds % 60_000


def _health(ctx: Context, view: WorkspaceView, page: LoadedPage) -> WorkspaceHealth:
    now = ctx.clock.now()
    agents = page.resources.agents_of_job.get(view.latest.job.id, ())
    # A stopped dev container does not make the workspace unhealthy.
    own = [parts.agent for parts in agents if parts.agent.parent_id is None]
    failing = [str(agent.id) for agent in own if not health_of(agent, now).healthy]
    return WorkspaceHealth(healthy=not failing, failing_agents=failing)


def _shared_with(view: WorkspaceView) -> list[SharedWorkspaceActor]:
    if not view.shared_with:
        return []
    row = view.workspace
    roles = {"user": acl_store.by_id(row.user_acl), "group": acl_store.by_id(row.group_acl)}
    return [
        SharedWorkspaceActor(
            id=actor.id,
            actor_type=actor.kind,
            name=actor.name,
            avatar_url=actor.avatar_url or UNSET,
            roles=[roles[actor.kind][str(actor.id)]],
        )
        for actor in view.shared_with
    ]
