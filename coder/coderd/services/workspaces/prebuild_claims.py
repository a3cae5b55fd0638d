"""Claiming a prebuilt workspace: changing its owner, and notifying the agent that runs in it.

A claim is followed by one more build, with the agents that run already.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.base.refusals import Conflict, Unauthenticated
from coder.coderd.services.agents.agent_access import find_by_token
from coder.coderd.services.people import quotas
from coder.coderd.store.access.keys import notify_sharing_revoked
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.workspaces import port_shares, system_workspaces
from coder.coderd.store.workspaces import prebuilds as prebuild_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.coderd.store.workspaces.prebuilds import CLAIMED
from coder.coderd.store.workspaces.workspaces import WorkspaceRow

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

CHECK_INTERVAL = 15.0
"""Seconds between two checks that a waiting agent's token is still valid, as for connected agents."""


async def claim(tx: Tx, requested: WorkspaceRow, preset_id: UUID | None) -> WorkspaceRow | None:
    """Give a prebuilt workspace of the preset the owner, the name and all other values of `requested`, except the id.

    Return None if no workspace is ready, or if the new owner's quota is too small for it: the workspace runs already,
    and no later refusal would stop it. The caller builds it: its second build, and the first for the new owner.
    """
    if preset_id is None:
        return None
    workspace_id = await prebuild_store.lock_claimable(tx, preset_id)
    prebuilt = await system_workspaces.get_workspace(tx, workspace_id) if workspace_id else None
    if prebuilt is None or workspace_id is None or not await quotas.can_afford(tx, prebuilt, requested.owner_id):
        return None
    changes: workspace_store.WorkspaceChanges = {
        "owner_id": requested.owner_id,
        "name": requested.name,
        "autostart_schedule": requested.autostart_schedule,
        "next_start_at": requested.next_start_at,
        "ttl_ms": requested.ttl_ms,
        "automatic_updates": requested.automatic_updates,
        "last_used_at": requested.last_used_at,
        "updated_at": requested.updated_at,
        "created_at": requested.created_at,
        # An administrator could have granted themselves access before the claim.
        "favorite": requested.favorite,
        "user_acl": requested.user_acl,
        "group_acl": requested.group_acl,
        "dormant_at": requested.dormant_at,
        "deleting_at": requested.deleting_at,
    }
    await workspace_store.update_workspace(tx, workspace_id, **changes)
    await port_shares.delete_port_shares(tx, workspace_id)
    await notify_sharing_revoked(tx)
    await notify_change(tx, "state", owner_id=PREBUILDS_USER_ID, workspace_id=workspace_id)
    return await system_workspaces.get_workspace(tx, workspace_id)


@dataclass(frozen=True, slots=True)
class ClaimWaiter:
    """An agent that waits until its workspace is claimed, identified by its token."""

    workspace_id: UUID
    token: UUID


async def watch_claim(
    ctx: Context, waiter: ClaimWaiter, *, only_prebuilt: bool = False
) -> AsyncIterator[dict[str, str]]:
    """Yield an event when the prebuilt workspace is claimed, so that its agent restarts. Silent until then.

    Raises Unauthenticated as soon as the agent's token is no longer valid. With `only_prebuilt`, raises Conflict before
    the first item if the workspace can no longer be claimed.
    """
    workspace_id = waiter.workspace_id
    async with ctx.db.listen(CLAIMED) as notices:
        if only_prebuilt and not await ctx.db.read(prebuild_store.may_be_claimed, workspace_id):
            raise Conflict(
                "Workspace is not a prebuilt workspace waiting to be claimed.",
                "This endpoint is only for agents running in prebuilt workspaces.",
            )
        checked_at = trio.current_time()
        while True:
            payload = await _next_notice(ctx, notices, checked_at + CHECK_INTERVAL)
            if ctx.stopping.is_set():
                return
            if payload not in {None, RESYNC, str(workspace_id)}:
                continue  # a notice of another workspace
            checked_at = trio.current_time()
            if not await ctx.db.read(_is_valid_waiter, waiter):
                raise Unauthenticated("Workspace agent not authorized.")
            missed = payload == RESYNC and not await ctx.db.read(prebuild_store.may_be_claimed, workspace_id)
            if payload != str(workspace_id) and not (missed and only_prebuilt):
                continue
            workspace = await ctx.db.read(system_workspaces.get_workspace, workspace_id)
            if workspace is not None:
                yield {"workspace_id": str(workspace_id), "reason": CLAIMED, "owner_id": str(workspace.owner_id)}


async def _is_valid_waiter(tx: Tx, waiter: ClaimWaiter) -> bool:
    """Return whether the agent's token still entitles it to wait.

    While the claiming build runs, the newest build has no agent, and no agent has the token: the agent waits for that.
    """
    location = await find_by_token(tx, waiter.token)
    if location is not None:
        return location.workspace_id == waiter.workspace_id
    return await prebuild_store.may_be_claimed(tx, waiter.workspace_id)


async def _next_notice(ctx: Context, notices: trio.MemoryReceiveChannel[tuple[str, str]], until: float) -> str | None:
    """Return the next payload; None after `until`, and when the server stops."""
    payload: str | None = None
    with trio.move_on_at(until):
        async with trio.open_nursery() as nursery:

            async def stop() -> None:
                await ctx.stopping.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop)
            _, payload = await notices.receive()
            nursery.cancel_scope.cancel()
    return payload
