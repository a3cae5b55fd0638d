"""Sharing single ports of a workspace: with which users, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, cast
from uuid import UUID

from msgspec import UNSET

from coder.api.agents.agent_ports import (
    UpsertWorkspaceAgentPortShareRequest,
    WorkspaceAgentPortShare,
    WorkspaceAgentPortShareProtocol,
    WorkspaceAgentPortShares,
)
from coder.api.base.enums import WorkspaceAgentPortShareLevel
from coder.api.base.refusals import Invalid, NotFound
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.workspace_access import (
    hold_template_of,
    load_workspace,
    lock_workspace,
    workspace_resource,
)
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.store.access.keys import notify_sharing_revoked
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.workspaces import port_shares as share_store
from coder.coderd.store.workspaces.port_shares import PortShareRow
from coder.domain.access.policy import Subject
from coder.domain.foundation.share_levels import is_shared_too_widely
from coder.domain.workspaces.workspaces import (
    LEVEL_REFUSED,
    MAX_SHARED_PORTS,
)

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_EXPIRED_BEFORE = "The expiry of the share is in the past."
_EXPIRED = "The share has expired. Set a new expiry, or null for no expiry."


async def list_port_shares(ctx: Context, subject: Subject, workspace_id: UUID) -> WorkspaceAgentPortShares:
    """Return the shares that have not expired. Raises NotFound."""
    await load_workspace(ctx, subject, workspace_id)
    rows = await ctx.db.read(share_store.list_port_shares, workspace_id, ctx.clock.now())
    return WorkspaceAgentPortShares(shares=[_present_share(row) for row in rows])


async def share_port(
    ctx: Context, subject: Subject, workspace_id: UUID, request: UpsertWorkspaceAgentPortShareRequest
) -> WorkspaceAgentPortShare:
    """Share a port, or change an existing share. Raises Invalid, NotFound, Forbidden."""
    return _present_share(await ctx.db.run(_share_port, subject, workspace_id, request, ctx.clock.now()))


async def _share_port(
    tx: Tx, subject: Subject, workspace_id: UUID, request: UpsertWorkspaceAgentPortShareRequest, now: datetime
) -> PortShareRow:
    template = await hold_template_of(tx, workspace_id)  # a lowered limit narrows the shares that it finds
    view = await lock_workspace(tx, subject, workspace_id, "read")
    check_request(request)
    if is_shared_too_widely(request.share_level, template.max_port_share_level):
        raise Invalid(LEVEL_REFUSED, validations=[("share_level", LEVEL_REFUSED)])
    level = cast("WorkspaceAgentPortShareLevel", request.share_level)
    protocol = cast("WorkspaceAgentPortShareProtocol", request.protocol)
    keep_expiry = request.expires_at is UNSET
    expires_at = None if request.expires_at is UNSET else request.expires_at
    share = PortShareRow(workspace_id, request.agent_name, request.port, level, protocol, expires_at)
    if keep_expiry:
        share = replace(share, expires_at=await share_store.end_of_port_share(tx, share))
    if share.expires_at is not None and share.expires_at <= now:
        # A kept expiry is checked, too: changing a share that has just expired must not make it permanent.
        message = _EXPIRED if keep_expiry else _EXPIRED_BEFORE
        raise Invalid(message, validations=[("expires_at", message)])
    agents = await agent_store.list_agents_of_jobs(tx, [view.latest.job.id])
    if share.agent_name not in {detail.agent.name for detail in agents}:
        raise Invalid("Agent not found.")
    require(subject, "update", workspace_resource(view.workspace))  # readers hear first what is wrong with the request
    before = await share_store.list_port_shares(tx, share.workspace_id, now)
    await share_store.put_port_share(tx, share)
    # A workspace may exceed the limit with shares from before it existed; changing them must stay possible.
    if len(await share_store.list_port_shares(tx, share.workspace_id, now)) > max(MAX_SHARED_PORTS, len(before)):
        raise Invalid(f"A workspace shares at most {MAX_SHARED_PORTS} ports.")
    await notify_sharing_revoked(tx)  # for visitors who connected by a wider share
    return share


async def unshare_port(ctx: Context, subject: Subject, workspace_id: UUID, agent_name: str, port: int) -> None:
    """Delete a share, and disconnect its visitors. Raises NotFound, Forbidden."""

    async def write(tx: Tx) -> None:
        view = await lock_workspace(tx, subject, workspace_id, "read")
        if not await share_store.delete_port_share(tx, workspace_id, agent_name, port):
            raise NotFound("Share not found.")
        require(subject, "update", workspace_resource(view.workspace))
        await notify_sharing_revoked(tx)

    await ctx.db.run(write)


def _present_share(row: PortShareRow) -> WorkspaceAgentPortShare:
    return WorkspaceAgentPortShare(
        workspace_id=row.workspace_id,
        agent_name=row.agent_name,
        port=row.port,
        share_level=row.share_level,
        protocol=row.protocol,
        expires_at=row.expires_at or UNSET,
    )
