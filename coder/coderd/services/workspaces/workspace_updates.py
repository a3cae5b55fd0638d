"""WorkspaceUpdates: a user's workspaces and agents as a snapshot, then as differences.

Source: docs/protocol/coordination.md#workspace-updates.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from google.protobuf.message import Message

from coder.api.base.refusals import NotFound
from coder.coderd.services.access.workspace_access import readers
from coder.coderd.store.agents.agents import list_current_agents
from coder.coderd.store.workspaces.workspace_search import WorkspaceSearch, list_views
from coder.domain.access.policy import Subject, allowed_ids, scope_allows
from coder.rpc.errors import RpcError
from coder.rpc.proto import tailnet_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_Status = tailnet_pb2.Workspace.Status


@dataclass(frozen=True, slots=True)
class _Owned:
    """Rows known to the client, by id, comparable."""

    workspaces: Mapping[UUID, tuple[str, str]] = field(default_factory=dict)
    "Name and status."
    agents: Mapping[UUID, tuple[str, UUID]] = field(default_factory=dict)
    "Name and workspace."


async def serve_workspace_updates(
    ctx: Context,
    subject_now: Callable[[], Awaitable[Subject | None]],
    request: tailnet_pb2.WorkspaceUpdatesRequest,
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Send updates until the caller leaves. Each one contains what the caller may read at that time.

    Raises RpcError for an invalid id, NotFound for another user's.
    """
    if len(request.workspace_owner_id) != 16:
        raise RpcError(0, f"invalid UUID (got {len(request.workspace_owner_id)} bytes)")
    owner_id = UUID(bytes=request.workspace_owner_id)
    subject = await subject_now()
    if subject is None or owner_id != subject.user_id or not scope_allows(subject, "read", "workspace"):
        raise NotFound
    changes = ctx.services.api.workspace_changes
    await changes.wait_ready()
    known = _Owned()
    with changes.watch(owner_id=owner_id) as watch:
        first = True
        while (subject := await subject_now()) is not None:
            watch.drain()
            current = await ctx.db.read(_read_owned, subject, ctx.clock.now())
            update = difference(known, current)
            if first or update.ByteSize():
                await send(update)
            known, first = current, False
            await watch.next()


async def _read_owned(tx: Tx, subject: Subject, now: datetime) -> _Owned:
    """Return the owner's workspaces and agents that the caller may read; a limited key narrows the workspaces."""
    allowed = allowed_ids(subject, "workspace")
    page = await list_views(tx, WorkspaceSearch(owner_id=subject.user_id), readers(subject), now=now)
    views = [view for view in page.views if allowed is None or str(view.workspace.id) in allowed]
    workspaces = {view.workspace.id: (view.workspace.name, view.latest.status) for view in views}
    agents = await list_current_agents(tx, subject.user_id)
    readable = [location for location in agents if location.workspace_id in workspaces]
    return _Owned(
        workspaces, {location.agent.id: (location.agent.name, location.workspace_id) for location in readable}
    )


def difference(old: _Owned, new: _Owned) -> tailnet_pb2.WorkspaceUpdate:
    """Return the message that turns `old` into `new`; from an empty `old` it is the snapshot."""
    return tailnet_pb2.WorkspaceUpdate(
        upserted_workspaces=[
            _workspace(key, *row) for key, row in new.workspaces.items() if old.workspaces.get(key) != row
        ],
        upserted_agents=[_agent(key, *row) for key, row in new.agents.items() if old.agents.get(key) != row],
        deleted_workspaces=[_workspace(key, *row) for key, row in old.workspaces.items() if key not in new.workspaces],
        deleted_agents=[_agent(key, *row) for key, row in old.agents.items() if key not in new.agents],
    )


def _workspace(workspace_id: UUID, name: str, status: str) -> tailnet_pb2.Workspace:
    known = status.upper() in _Status.DESCRIPTOR.values_by_name
    value = _Status.Value(status.upper()) if known else _Status.UNKNOWN
    return tailnet_pb2.Workspace(id=workspace_id.bytes, name=name, status=value)


def _agent(agent_id: UUID, name: str, workspace_id: UUID) -> tailnet_pb2.Agent:
    return tailnet_pb2.Agent(id=agent_id.bytes, name=name, workspace_id=workspace_id.bytes)
