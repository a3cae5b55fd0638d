"""Streams of a workspace: the whole of it, or the connection states, now and after every change.

A stream listens before it reads for the first time, so it misses no change. Some changes come with time alone (an agent
never connected, or timed out): a timer covers them. Streams end when the user may no longer read the workspace, and
when the server stops.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

import msgspec
import trio

from coder.api.base import codec
from coder.api.base.refusals import NotFound
from coder.api.workspaces.workspaces import Workspace
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import reveals_values, workspace_resource
from coder.coderd.services.workspaces.change_feed import PING_EVERY
from coder.coderd.services.workspaces.workspace_view import LoadedPage, load_page, present_workspace, strict_tags
from coder.coderd.store.agents.agents import AgentRow
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.access.policy import Subject
from coder.domain.agents.agents import status_changes_at

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.workspaces.change_feed import WorkspaceChangeFeed


@dataclass(slots=True)
class WorkspaceSnapshot:
    """State of a workspace at the time it was read."""

    view: WorkspaceView
    page: LoadedPage
    workspace: Workspace
    version: tuple[int, int]
    read_at: datetime
    changes_at: datetime | None
    "Time after which it looks different without any change to its rows."

    encoded: dict[bool, bytes] = field(default_factory=dict)
    "The JSON for readers who may see values inside the workspace, and for others; composed when first needed."

    def encoded_for(self, ctx: Context, subject: Subject) -> bytes:
        """Return the workspace's JSON as the subject may see it."""
        reveals = reveals_values(subject, self.view.workspace)
        if reveals not in self.encoded:
            workspace = self.workspace if reveals else present_workspace(ctx, self.view, self.page, reveals=False)
            self.encoded[reveals] = codec.encode(workspace)
        return self.encoded[reveals]

    def is_fresh(self, version: tuple[int, int], now: datetime) -> bool:
        """Return whether reading again would give the same result."""
        return self.version == version and (self.changes_at is None or not self.read_at < self.changes_at < now)


class Snapshots:
    """Cache of workspaces: one read per change, even for hundreds of watchers."""

    LIMIT = 256
    "Number of cached workspaces; the oldest is evicted."

    def __init__(self, ctx: Context, changes: WorkspaceChangeFeed) -> None:
        self._ctx = ctx
        self._changes = changes
        self._cache: dict[UUID, WorkspaceSnapshot] = {}
        self._reads: dict[UUID, trio.Event] = {}
        "Set when a read in progress ends, successfully or not."

    async def get(self, workspace_id: UUID) -> WorkspaceSnapshot | None:
        """Return the current state; the caller must be watching the workspace. None for an unknown one."""
        while (snapshot := self._cached(workspace_id)) is None:
            read_ended = self._reads.get(workspace_id)
            if read_ended is None:
                return await self._read_shared(workspace_id)
            # An event, not a lock: hundreds of waiting streams resume in one round, not one after the other.
            await read_ended.wait()
        return snapshot

    async def _read_shared(self, workspace_id: UUID) -> WorkspaceSnapshot | None:
        read_ended = self._reads[workspace_id] = trio.Event()
        try:
            return await self._read(workspace_id)
        finally:
            del self._reads[workspace_id]
            read_ended.set()

    def _cached(self, workspace_id: UUID) -> WorkspaceSnapshot | None:
        snapshot = self._cache.get(workspace_id)
        if snapshot is not None and snapshot.is_fresh(self._changes.version(workspace_id), self._ctx.clock.now()):
            return snapshot
        return None

    async def _read(self, workspace_id: UUID) -> WorkspaceSnapshot | None:
        ctx, version = self._ctx, self._changes.version(workspace_id)
        now = ctx.clock.now()
        view = await ctx.db.read(system_workspaces.get_view, workspace_id)
        if view is None:
            return None
        page = await ctx.db.read(load_page, [view.latest], now, strict=strict_tags(ctx))
        workspace = present_workspace(ctx, view, page, reveals=True)
        changes_at = _next_change(page, view.latest.job.id)
        snapshot = WorkspaceSnapshot(view, page, workspace, version, now, changes_at)
        self._cache.pop(workspace_id, None)
        self._cache[workspace_id] = snapshot
        while len(self._cache) > self.LIMIT:
            del self._cache[next(iter(self._cache))]
        return snapshot


async def watch_workspace(ctx: Context, subject: Subject, workspace_id: UUID) -> AsyncIterator[msgspec.Raw | None]:
    """Yield the workspace as JSON at once, then whenever it differs. Raises NotFound before the first item."""
    async with aclosing(_watch_snapshots(ctx, subject, workspace_id)) as snapshots:  # type: ignore[type-var]
        async for snapshot in snapshots:
            yield None if snapshot is None else msgspec.Raw(snapshot.encoded_for(ctx, subject))


async def _watch_snapshots(
    ctx: Context, subject: Subject, workspace_id: UUID
) -> AsyncIterator[WorkspaceSnapshot | None]:
    changes = ctx.services.api.workspace_changes
    await changes.wait_ready()
    with changes.watch(workspace_id=workspace_id) as watch:
        last_sent = b""
        while not ctx.stopping.is_set():
            snapshot = await ctx.services.api.workspace_snapshots.get(workspace_id)
            if snapshot is None or not may(subject, "read", workspace_resource(snapshot.view.workspace)):
                if not last_sent:
                    raise NotFound
                return
            encoded = snapshot.encoded_for(ctx, subject)
            if encoded != last_sent:
                last_sent = encoded
                yield snapshot
            timeout = _seconds_until(snapshot.changes_at, ctx.clock.now())
            if await watch.next_within(timeout) is None:
                yield None
            watch.drain()


ConnectionEvent: TypeAlias = dict[str, dict[str, UUID | str]]
"""State of a build or of an agent, by `build_update` or `agent_update`."""


async def watch_connections(
    ctx: Context, subject: Subject, workspace_id: UUID
) -> AsyncIterator[ConnectionEvent | None]:
    """Yield the build's state and each agent's, at once and after each change, for clients that wait to connect.

    Raises NotFound before the first item.
    """
    sent: dict[str, ConnectionEvent] = {}
    async with aclosing(_watch_snapshots(ctx, subject, workspace_id)) as snapshots:  # type: ignore[type-var]
        async for snapshot in snapshots:
            if snapshot is None:
                yield None
                continue
            events = _connection_events(snapshot.workspace)
            for key, event in events.items():
                if sent.get(key) != event:
                    yield event
            sent = events  # without the agents of earlier builds


def _connection_events(workspace: Workspace) -> dict[str, ConnectionEvent]:
    build = workspace.latest_build
    state: dict[str, UUID | str] = {"id": build.id, "transition": build.transition, "job_status": build.job.status}
    events: dict[str, ConnectionEvent] = {"build": {"build_update": state}}
    for resource in build.resources:
        for agent in resource.agents or ():
            events[f"agent {agent.id}"] = {
                "agent_update": {
                    "id": agent.id,
                    "name": agent.name,
                    "status": agent.status,
                    "lifecycle": agent.lifecycle_state,
                }
            }
    return events


def _next_change(page: LoadedPage, job_id: UUID) -> datetime | None:
    times = [_changes_at(parts.agent) for parts in page.resources.agents_of_job.get(job_id, ())]
    return min((time for time in times if time is not None), default=None)


def _changes_at(agent: AgentRow) -> datetime | None:
    return status_changes_at(
        created_at=agent.created_at,
        first_connected_at=agent.first_connected_at,
        last_connected_at=agent.last_connected_at,
        disconnected_at=agent.disconnected_at,
        connection_timeout_seconds=agent.connection_timeout_seconds,
    )


def _seconds_until(time: datetime | None, now: datetime) -> float:
    if time is None or time <= now:
        return PING_EVERY
    return min((time - now).total_seconds(), PING_EVERY)
