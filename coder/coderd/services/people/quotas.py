"""Quotas: credits a day that the workspaces of a member may cost in an organization.

The budget is the sum of the allowances of the member's groups, Everyone included. While no group of an organization has
an allowance there is no limit (-1): quotas begin with the first allowance, not with the first build that costs
something. `coder_metadata.daily_cost` of a template gives the cost of its resources.

The cost of a workspace is that of its newest build. A new build inherits the cost of the previous one until its own is
known: a refused, failed or canceled build leaves the running resources as they are. A granted build raises the cost
immediately; only a successful build lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Invalid, NotFound
from coder.coderd.services.people import users
from coder.coderd.store.engine import names as name_store
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import system_builds, system_workspaces
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.workspaces.workspaces import WorkspaceRow

UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Quota:
    """Credits a day, of one member of one organization."""

    consumed: int
    budget: int
    "Sum of the allowances; -1 for no limit."
    granted: bool = True
    "Whether the build may continue."


async def quota_of(ctx: Context, subject: Subject, organization: str, user: str) -> Quota:
    """Return the consumption and the budget of a member. Raises NotFound."""
    organization_id = await ctx.db.read(name_store.find_organization, organization)
    if organization_id is None:
        raise NotFound
    row = await users.resolve_user(ctx, subject, user)
    return _visible_quota(await ctx.db.read(_quota, organization_id, row.id))


async def _quota(tx: Tx, organization_id: UUID, owner_id: UUID) -> Quota:
    budget = await group_store.quota_budget(tx, organization_id, owner_id)
    consumed = await build_store.sum_daily_cost(tx, owner_id, organization_id)
    return Quota(consumed, UNLIMITED if budget is None else budget)


async def commit(tx: Tx, job_id: UUID, daily_cost: int) -> Quota:
    """Decide whether the build of a job may continue, and record its cost if it may. Raises Invalid for other jobs.

    A build that costs no more than the previous one is always granted: stopping and deleting must never be refused. A
    negative cost counts as zero: no workspace pays for another.
    """
    daily_cost = max(daily_cost, 0)
    build = await system_builds.get_build_by_job(tx, job_id)
    workspace = await system_workspaces.get_workspace(tx, build.workspace_id) if build else None
    if build is None or workspace is None:
        raise Invalid("quotas are for builds of workspaces")
    await group_store.lock_quota(tx, workspace.owner_id)
    quota = await _quota(tx, workspace.organization_id, workspace.owner_id)
    # Only the newest build counts. It may have been counted already: a daemon may ask twice.
    consumed = quota.consumed - build.daily_cost + daily_cost
    previous = await system_builds.get_previous_build(tx, build)
    dearer = previous is None or daily_cost > previous.daily_cost
    if quota.budget != UNLIMITED and dearer and daily_cost > 0 and consumed > quota.budget:
        return Quota(quota.consumed, quota.budget, granted=False)
    await build_store.update_build(tx, build.id, daily_cost=max(build.daily_cost, daily_cost), granted_cost=daily_cost)
    return _visible_quota(Quota(consumed, quota.budget))


async def can_afford(tx: Tx, workspace: WorkspaceRow, owner_id: UUID) -> bool:
    """Whether a user's budget covers a running workspace of another owner. Locked until the transaction ends."""
    await group_store.lock_quota(tx, owner_id)
    quota = await _quota(tx, workspace.organization_id, owner_id)
    build = await system_builds.get_latest_build(tx, workspace.id)
    cost = build.daily_cost if build else 0
    return quota.budget == UNLIMITED or cost == 0 or quota.consumed + cost <= quota.budget


def _visible_quota(quota: Quota) -> Quota:
    """Return the quota to show. Without allowances nothing counts (recorded), but costs are stored for later."""
    return Quota(0, UNLIMITED) if quota.budget == UNLIMITED else quota
