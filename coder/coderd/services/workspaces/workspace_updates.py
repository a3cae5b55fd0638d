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

from coder.coderd.services.events.change_feed import WorkspaceChanges
from coder.coderd.services.foundation.errors import NotFound
from coder.coderd.store.agents.agents import list_current_agents
from coder.coderd.store.workspaces.workspace_search import WorkspaceReaders, WorkspaceSearch, list_views
from coder.domain.access.policy import Subject, allowed_ids, scope_allows
from coder.rpc.errors import RpcError
from coder.rpc.proto import tailnet_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_Status = tailnet_pb2.Workspace.Status


@dataclass(frozen=True, slots=True)
class _Owned:
    """What the other end knows: rows by id, comparable."""

    workspaces: Mapping[UUID, tuple[str, str]] = field(default_factory=dict)
    "Name and status."
    agents: Mapping[UUID, tuple[str, UUID]] = field(default_factory=dict)
    "Name and workspace."


async def serve_workspace_updates(
    ctx: Context,
    subject: Subject,
    request: tailnet_pb2.WorkspaceUpdatesRequest,
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Sends until the caller leaves. Raises RpcError for an id that is none, NotFound for somebody else's."""
    if len(request.workspace_owner_id) != 16:
        raise RpcError(0, f"invalid UUID (got {len(request.workspace_owner_id)} bytes)")
    owner_id = UUID(bytes=request.workspace_owner_id)
    if owner_id != subject.user_id or not scope_allows(subject, "read", "workspace"):
        raise NotFound
    changes = ctx.part(WorkspaceChanges)
    await changes.wait_ready()
    known = _Owned()
    with changes.watch(owner_id=owner_id) as watch:
        first = True
        while True:
            watch.drain()
            current = await ctx.db.read(_read_owned, owner_id, ctx.clock.now(), allowed_ids(subject, "workspace"))
            update = difference(known, current)
            if first or update.ByteSize():
                await send(update)
            known, first = current, False
            await watch.next()


async def _read_owned(tx: Tx, owner_id: UUID, now: datetime, listed: frozenset[str] | None) -> _Owned:
    """What the owner has; only the workspaces of `listed` when the caller's key is limited to some."""

    def shown(workspace_id: UUID) -> bool:
        return listed is None or str(workspace_id) in listed

    readers = WorkspaceReaders(everything=True, organization_ids=[], user_id=owner_id, group_ids=[])
    page = await list_views(tx, WorkspaceSearch(owner_id=owner_id), readers, now=now)
    agents = await list_current_agents(tx, owner_id)
    views = [view for view in page.views if shown(view.workspace.id)]
    return _Owned(
        {view.workspace.id: (view.workspace.name, view.latest.status) for view in views},
        {place.agent.id: (place.agent.name, place.workspace_id) for place in agents if shown(place.workspace_id)},
    )


def difference(old: _Owned, new: _Owned) -> tailnet_pb2.WorkspaceUpdate:
    """The message that turns the one into the other; from an empty one it is the snapshot."""
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
