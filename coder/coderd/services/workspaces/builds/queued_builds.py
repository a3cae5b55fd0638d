"""A build that was just queued, as the answer to its request describes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import (
    NotFound,
)
from coder.api.provisioning.jobs import MatchedProvisioners
from coder.api.workspaces.builds import WorkspaceBuild
from coder.coderd.services.provisioning import jobs as job_service
from coder.coderd.services.workspaces.builds.build_requests import BuildRules
from coder.coderd.services.workspaces.workspace_view import LoadedPage, present_build
from coder.coderd.store.workspaces import system_builds
from coder.coderd.store.workspaces.builds import BuildView

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class QueuedBuild:
    """A build that was just queued, and the daemons that match it."""

    view: BuildView
    matched: MatchedProvisioners


async def load_queued_build(tx: Tx, build_id: UUID, rules: BuildRules, now: datetime) -> QueuedBuild:
    """Return a build that was just queued, with the count of matching daemons."""
    view = await system_builds.get_view(tx, build_id)
    if view is None:
        raise NotFound
    return QueuedBuild(view, await job_service.match_provisioners(tx, view.job, now, strict=rules.strict_tags))


def present_queued(ctx: Context, queued: QueuedBuild) -> WorkspaceBuild:
    """Return the response to the build's creation: without the version's name, with the count of matching daemons."""
    response = present_build(ctx, queued.view, LoadedPage.empty(), reveals=False)
    response.template_version_name = ""
    response.matched_provisioners = queued.matched
    return response
