"""Deadlines of running workspaces: of builds that succeeded, and how activity extends them. The rules are in
`coder/domain/workspaces/autostop.py`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.store.people import system_users
from coder.coderd.store.templates.templates import TemplateRow
from coder.coderd.store.workspaces import autobuilds as store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.workspaces.autostop import Deadlines, Requirement, bumped_deadline, deadlines, quiet_hours
from coder.domain.workspaces.workspaces import next_start

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def build_deadlines(
    tx: Tx, workspace: WorkspaceRow, template: TemplateRow | None, transition: str, now: datetime, default_quiet: str
) -> Deadlines:
    """Return the deadlines of a build of `workspace` that succeeded at `now`."""
    if template is None:
        return deadlines(now, workspace.ttl_ms, Requirement(0), None)
    ttl_ms = workspace.ttl_ms if template.allow_user_autostop else template.default_ttl_ms or None
    if transition != "start" or not template.autostop_days:
        return deadlines(now, ttl_ms, Requirement(0), None)
    owner = await system_users.get_user(tx, workspace.owner_id)
    quiet = quiet_hours(owner.quiet_hours_schedule if owner else "", default_quiet)
    return deadlines(now, ttl_ms, Requirement(template.autostop_days, template.autostop_weeks), quiet)


async def bump_deadline(tx: Tx, build_id: UUID, now: datetime) -> None:
    """Extend the deadline of a workspace in use. `last_use.py` stores the time of last use."""
    build = await store.get_bumpable(tx, build_id)
    if build is None:
        return
    schedule = build.autostart_schedule if build.allow_user_autostart else None
    deadline = bumped_deadline(
        now,
        build.deadline,
        build.max_deadline,
        bump_ms=build.activity_bump_ms,
        next_autostart=next_start(schedule, now, allowed_days=build.autostart_days),
        ttl_ms=build.ttl_ms if build.allow_user_autostop else build.default_ttl_ms,
    )
    if deadline is not None:
        await build_store.update_build(tx, build_id, deadline=deadline)
