"""What people change about a workspace without building it: schedule, time to live, deadline, dormancy, sharing.

Every change is told to watchers in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.agents.agent_ports import (
    UpsertWorkspaceAgentPortShareRequest,
    WorkspaceAgentPortShare,
    WorkspaceAgentPortShares,
)
from coder.api.base.refusals import Conflict, Forbidden, Invalid, NotFound
from coder.api.workspaces.workspace_settings import (
    ExtendWorkspaceRequest,
    UpdateWorkspaceAutomaticUpdatesRequest,
    UpdateWorkspaceAutostartRequest,
    UpdateWorkspaceTTLRequest,
    WorkspaceACL,
    WorkspaceGroup,
    WorkspaceUser,
)
from coder.api.workspaces.workspaces import Workspace
from coder.coderd.services.access.acl_actors import Asked, hold_users, role_faults
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.workspace_access import load_workspace, lock_workspace, workspace_resource
from coder.coderd.services.activity.last_use import LastUse
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.workspaces.workspaces import present
from coder.coderd.store.access import acls as acl_store
from coder.coderd.store.access.keys import notify_shared_less
from coder.coderd.store.agents import agent_stats as stats_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import users as user_store
from coder.coderd.store.templates import template_versions as version_store
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces import builds as build_store
from coder.coderd.store.workspaces import port_shares as share_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.change_feed import Kind, notify_change
from coder.coderd.store.workspaces.port_shares import PortShareRow as PortShareRow
from coder.coderd.store.workspaces.workspaces import WorkspaceRow
from coder.domain.access.policy import Subject
from coder.domain.foundation.search import parse_rfc3339
from coder.domain.foundation.share_levels import is_shared_too_widely
from coder.domain.foundation.zero import ZERO_TIME
from coder.domain.templates.parameters import resolve_parameters
from coder.domain.workspaces.workspaces import (
    LEVEL_REFUSED,
    MOST_SHARED_PORTS,
    explain_deadline,
    next_start,
)

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_OVER = "The share would be over before it begins."
_ENDED = "The share has ended. Say until when it holds anew, or null for no end."
_APPS = frozenset({"vscode", "jetbrains", "reconnecting-pty", "ssh"})


async def set_autostart(
    ctx: Context, subject: Subject, workspace_id: UUID, wanted: UpdateWorkspaceAutostartRequest
) -> None:
    """No schedule clears. Raises Invalid, NotFound, Forbidden."""
    await ctx.db.run(_set_autostart, subject, workspace_id, wanted, ctx.clock.now())


async def _set_autostart(
    tx: Tx, subject: Subject, workspace_id: UUID, wanted: UpdateWorkspaceAutostartRequest, now: datetime
) -> None:
    row = (await lock_workspace(tx, subject, workspace_id)).workspace
    template = await template_store.get_template(tx, row.template_id)
    days = template.autostart_days if template else 127
    check_request(wanted)
    schedule = wanted.schedule or None
    if schedule and template is not None and not template.allow_user_autostart:
        raise Invalid("Autostart is not allowed for workspaces using this template.")
    following = next_start(schedule, now, allowed_days=days)
    await _edit(tx, row, autostart_schedule=schedule, next_start_at=following)


async def set_ttl(ctx: Context, subject: Subject, workspace_id: UUID, wanted: UpdateWorkspaceTTLRequest) -> None:
    """None or 0 clears, and with it the deadline of a running build; the latest one its template allows stays."""
    await ctx.db.run(_set_ttl, subject, workspace_id, wanted, ctx.clock.now())


async def _set_ttl(
    tx: Tx, subject: Subject, workspace_id: UUID, wanted: UpdateWorkspaceTTLRequest, now: datetime
) -> None:
    view = await lock_workspace(tx, subject, workspace_id)
    template = await template_store.get_template(tx, view.workspace.template_id)
    if template is not None and not template.allow_user_autostop:
        raise Invalid("Error updating workspace time until shutdown.", "Custom autostop TTL is not allowed.")
    check_request(wanted)
    await _edit(tx, view.workspace, ttl_ms=wanted.ttl_ms or None)
    if not wanted.ttl_ms and view.latest.build.transition == "start":
        # Whoever may set a time of one's own is not freed by it from the template's.
        latest = view.latest.build.max_deadline
        await build_store.update_build(tx, view.latest.build.id, deadline=latest, updated_at=now)


async def extend(ctx: Context, subject: Subject, workspace_id: UUID, wanted: ExtendWorkspaceRequest) -> None:
    """Moves the deadline of a running workspace, later or sooner.

    Raises Conflict (not running, or it has no deadline), Invalid (no time, too soon, too late), Forbidden.
    """
    await ctx.db.run(_extend, subject, workspace_id, wanted, ctx.clock.now())


async def _extend(tx: Tx, subject: Subject, workspace_id: UUID, wanted: ExtendWorkspaceRequest, now: datetime) -> None:
    view = await lock_workspace(tx, subject, workspace_id, "read")
    check_request(wanted)
    deadline = parse_rfc3339(wanted.deadline or "") or ZERO_TIME
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


async def set_automatic_updates(
    ctx: Context, subject: Subject, workspace_id: UUID, wanted: UpdateWorkspaceAutomaticUpdatesRequest
) -> None:
    async def write(tx: Tx) -> None:
        row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
        if not may(subject, "update", workspace_resource(row)):
            raise NotFound  # upstream hides it here, unlike its neighbours
        check_request(wanted)
        await _edit(tx, row, automatic_updates=wanted.automatic_updates)

    await ctx.db.run(write)


async def set_favorite(ctx: Context, subject: Subject, workspace_id: UUID, favorite: bool) -> None:
    async def write(tx: Tx) -> None:
        row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
        if row.owner_id != subject.user_id:
            raise Forbidden("You can only favorite workspaces that you own.")
        await _edit(tx, row, favorite=favorite)

    await ctx.db.run(write)


async def set_dormant(ctx: Context, subject: Subject, workspace_id: UUID, dormant: bool) -> Workspace | None:
    """Puts a workspace to sleep or wakes it. None when it is so already.

    A running one goes on until its schedule or its owner stops it (recorded: no build is queued here).
    """
    if not await ctx.db.run(_set_dormant, subject, workspace_id, dormant, ctx.clock.now()):
        return None
    return await present(ctx, await load_workspace(ctx, subject, workspace_id))


async def _set_dormant(tx: Tx, subject: Subject, workspace_id: UUID, dormant: bool, now: datetime) -> bool:
    row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    if (row.dormant_at is not None) == dormant:
        return False
    require(subject, "update", workspace_resource(row))
    template = await template_store.get_template(tx, row.template_id)
    deletes_after = template.time_til_dormant_autodelete_ms if template else 0
    values: workspace_store.WorkspaceChanges = {"dormant_at": None, "deleting_at": None, "last_used_at": now}
    if dormant:
        deleting_at = now + timedelta(milliseconds=deletes_after) if deletes_after else None
        values = {"dormant_at": now, "deleting_at": deleting_at}
    await _edit(tx, row, "state", **values)
    return True


async def can_autostart(ctx: Context, subject: Subject, workspace_id: UUID) -> bool:
    """False: the active version has parameters that nobody has answered yet (`parameter_mismatch`)."""
    view = await load_workspace(ctx, subject, workspace_id)
    version_id = view.template.active_version_id
    updates = view.workspace.automatic_updates == "always" or view.template.require_active_version
    if not updates or view.latest.build.template_version_id == version_id:
        return True
    definitions = await ctx.db.read(version_store.list_parameters, version_id)
    previous = await ctx.db.read(build_store.list_parameters, view.latest.build.id)
    found = resolve_parameters(definitions, previous=previous, given={}, preset={}, first_build=False)
    return not found.refusals


async def record_usage(ctx: Context, subject: Subject, workspace_id: UUID, agent_id: UUID | None, app: str) -> None:
    """Somebody uses the workspace. Unknown agents and apps are ignored, as upstream does."""
    now = ctx.clock.now()
    await ctx.db.run(_record_usage, subject, workspace_id, agent_id, app, now)
    ctx.part(LastUse).note(workspace_id, now)


async def _record_usage(
    tx: Tx, subject: Subject, workspace_id: UUID, agent_id: UUID | None, app: str, now: datetime
) -> None:
    row = (await lock_workspace(tx, subject, workspace_id)).workspace
    place = await agent_store.get_agent_place(tx, agent_id) if agent_id is not None and app in _APPS else None
    if place is not None and place.workspace_id == row.id:
        stats: stats_store.AgentStats = {
            "created_at": now,
            "user_id": row.owner_id,
            "workspace_id": row.id,
            "template_id": row.template_id,
            "agent_id": place.agent.id,
            "usage": True,
        }
        counts: dict[str, Any] = {f"session_count_{app.replace('-', '_')}": 1}
        await stats_store.insert_stats(tx, **stats, **counts)


async def list_port_shares(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceAgentPortShares:
    await load_workspace(ctx, subject, workspace_id)
    rows = await ctx.db.read(share_store.list_port_shares, workspace_id, ctx.clock.now())
    return WorkspaceAgentPortShares(shares=[_present_share(row) for row in rows])


async def share_port(
    ctx: Context, subject: Subject, workspace_id: UUID, wanted: UpsertWorkspaceAgentPortShareRequest
) -> WorkspaceAgentPortShare:
    """Shares a port, or changes how. Raises Invalid, NotFound, Forbidden."""
    return _present_share(await ctx.db.run(_share_port, subject, workspace_id, wanted, ctx.clock.now()))


async def _share_port(
    tx: Tx, subject: Subject, workspace_id: UUID, wanted: UpsertWorkspaceAgentPortShareRequest, now: datetime
) -> PortShareRow:
    view = await lock_workspace(tx, subject, workspace_id)
    check_request(wanted)
    if is_shared_too_widely(wanted.share_level, view.template.max_port_share_level):
        raise Invalid(LEVEL_REFUSED, validations=[("share_level", LEVEL_REFUSED)])
    keep_expiry = wanted.expires_at is UNSET
    expires_at = None if wanted.expires_at is UNSET else wanted.expires_at
    share = PortShareRow(workspace_id, wanted.agent_name, wanted.port, wanted.share_level, wanted.protocol, expires_at)
    if keep_expiry:
        share = replace(share, expires_at=await share_store.end_of_port_share(tx, share))
    if share.expires_at is not None and share.expires_at <= now:
        # Kept, too: whoever changes a share that has just ended must not make it one for ever.
        said = _ENDED if keep_expiry else _OVER
        raise Invalid(said, validations=[("expires_at", said)])
    agents = await agent_store.list_agents_of_jobs(tx, [view.latest.job.id])
    if share.agent_name not in {detail.agent.name for detail in agents}:
        raise Invalid("Agent not found.")
    before = await share_store.list_port_shares(tx, share.workspace_id, now)
    await share_store.put_port_share(tx, share)
    # Who shares more, of before there was a limit, may make each of them less.
    if len(await share_store.list_port_shares(tx, share.workspace_id, now)) > max(MOST_SHARED_PORTS, len(before)):
        raise Invalid(f"A workspace shares at most {MOST_SHARED_PORTS} ports.")
    await notify_shared_less(tx)  # whoever came in by a wider share
    return share


async def unshare_port(ctx: Context, subject: Subject, workspace_id: UUID, agent_name: str, port: int) -> None:
    async def write(tx: Tx) -> None:
        await lock_workspace(tx, subject, workspace_id)
        if not await share_store.delete_port_share(tx, workspace_id, agent_name, port):
            raise NotFound("Share not found.")
        await notify_shared_less(tx)

    await ctx.db.run(write)


def _present_share(row: PortShareRow) -> WorkspaceAgentPortShare:
    return WorkspaceAgentPortShare(
        workspace_id=row.workspace_id,
        agent_name=row.agent_name,
        port=row.port,
        share_level=cast("Any", row.share_level),
        protocol=cast("Any", row.protocol),
        expires_at=row.expires_at or UNSET,
    )


async def get_acl(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceACL:
    """Whom the workspace is shared with. Group members are not listed, only counted."""
    view = await load_workspace(ctx, subject, workspace_id)
    row = view.workspace
    user_acl, group_acl = acl_store.by_id(row.user_acl), acl_store.by_id(row.group_acl)
    people, groups = await ctx.db.read(acl_store.load_actors, list(user_acl), list(group_acl))
    return WorkspaceACL(
        users=[
            WorkspaceUser(
                id=user.id,
                username=user.username,
                name=user.name or UNSET,
                avatar_url=user.avatar_url or UNSET,
                role=cast("Any", user_acl[str(user.id)]),
            )
            for user in people
        ],
        group=[
            WorkspaceGroup(
                id=group.id,
                name=group.name,
                display_name=group.display_name,
                organization_id=group.organization_id,
                members=[],
                total_member_count=group.member_count,
                avatar_url=group.avatar_url,
                quota_allowance=group.quota_allowance,
                source=cast("Any", group.source),
                organization_name=group.organization_name,
                organization_display_name=group.organization_display_name,
                role=cast("Any", group_acl[str(group.id)]),
            )
            for group in groups
        ],
    )


async def update_acl(
    ctx: Context,
    subject: Subject,
    workspace_id: UUID,
    user_roles: Mapping[str, str],
    group_roles: Mapping[str, str],
) -> None:
    """Gives or takes (empty role) access. Raises Invalid, Forbidden, NotFound."""
    organization_id = (await load_workspace(ctx, subject, workspace_id)).workspace.organization_id

    async def update(tx: Tx) -> None:
        await hold_users(tx, organization_id, user_roles)
        row = await _lock_shareable(ctx, tx, subject, workspace_id, organization_id)
        # Ids have several spellings; asked in ours, nobody gets past a check with another.
        if str(subject.user_id) in acl_store.by_id(user_roles):
            raise Invalid("You cannot change your own workspace sharing role.")
        asked = Asked("group_roles", group_roles), Asked("user_roles", user_roles)
        wrong = await role_faults(tx, subject, row.organization_id, "workspace", *asked)
        if wrong:
            raise Invalid("Invalid request to update workspace ACL", validations=wrong)
        user_acl, group_acl = _merged(row.user_acl, user_roles), _merged(row.group_acl, group_roles)
        await _edit(tx, row, user_acl=user_acl, group_acl=group_acl)
        await notify_shared_less(tx)

    await ctx.db.run(update)


async def clear_acl(ctx: Context, subject: Subject, workspace_id: UUID) -> None:
    organization_id = (await load_workspace(ctx, subject, workspace_id)).workspace.organization_id

    async def clear(tx: Tx) -> None:
        row = await _lock_shareable(ctx, tx, subject, workspace_id, organization_id)
        await _edit(tx, row, user_acl={}, group_acl={})
        await notify_shared_less(tx)

    await ctx.db.run(clear)


async def _lock_shareable(
    ctx: Context, tx: Tx, subject: Subject, workspace_id: UUID, organization_id: UUID
) -> WorkspaceRow:
    """The workspace as it is now, held until the transaction ends. Raises Forbidden, NotFound.

    The organization is held, too: turning sharing off waits for us and clears what we write, or we see that it is off.
    """
    if ctx.config.disable_workspace_sharing:
        raise Forbidden("Workspace sharing is disabled for this deployment.")
    organization = await organization_store.get_organization(tx, organization_id, hold=True)
    if organization is None:
        raise NotFound
    row = (await lock_workspace(tx, subject, workspace_id, "read")).workspace
    if organization.workspace_sharing == "none":
        raise Forbidden("Workspace sharing is disabled for this organization.")
    if organization.workspace_sharing == "service_accounts":
        owner = await user_store.get_user(tx, row.owner_id)
        if owner is None or not owner.is_service_account:
            raise Forbidden(
                "Workspace sharing is limited to service accounts in this organization.",
                "Only workspaces that a service account owns can be shared.",
            )
    require(subject, "share", workspace_resource(row))
    return row


def _merged(before: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    merged = {**acl_store.by_id(before), **acl_store.by_id(changes)}
    return {key: role for key, role in merged.items() if role}


async def _edit(
    tx: Tx, row: WorkspaceRow, kind: Kind = "settings", **values: Unpack[workspace_store.WorkspaceChanges]
) -> None:
    """Writes to a row that `lock_workspace` gave, and tells those who watch."""
    await workspace_store.update_workspace(tx, row.id, **values)
    await notify_change(tx, kind, owner_id=row.owner_id, workspace_id=row.id)
