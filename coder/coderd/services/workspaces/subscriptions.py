"""Streams that show a thing now and again at every change: workspaces, agents' metadata and logs.

A stream listens before it reads for the first time, so nothing falls between. Changes that only time brings (an agent
that never came, one that fell silent) are waited for with a timer: nobody writes anything then. Streams end by
themselves when what they show may no longer be seen, and when the server stops.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import trio

from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.agents.agents import (
    WorkspaceAgentMetadata,
    WorkspaceAgentMetadataDescription,
    WorkspaceAgentMetadataResult,
)
from coder.api.base import codec
from coder.api.base.refusals import Conflict, NotFound, Unauthenticated
from coder.api.workspaces.workspaces import Workspace
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.services.agents.agent_access import UNKNOWN, find_by_token, load_agent
from coder.coderd.services.agents.agent_logs import present_logs
from coder.coderd.services.workspaces.builds import strict_tags
from coder.coderd.services.workspaces.change_feed import Watch, WorkspaceChangeFeed
from coder.coderd.services.workspaces.workspace_view import LoadedPage, load_page, present_workspace
from coder.coderd.store.agents import agent_logs as log_store
from coder.coderd.store.agents import agent_metadata as metadata_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.agents.agents import AgentRow
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.workspaces import prebuilds as prebuild_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.change_feed import Change
from coder.coderd.store.workspaces.prebuilds import CLAIMED
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.access.policy import Subject
from coder.domain.agents.agents import status_changes_at
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_PING_EVERY = 15.0
# Seconds. Streams yield None when nothing happened for so long: proxies close silent connections.
_LOG_PAGE = 1000
LOOK_EVERY = 15.0
"""Seconds between looks whether an agent that waits for a claim could still ask: as those that are connected."""


@dataclass(frozen=True, slots=True)
class SharedReading:
    """A workspace as it looked when it was read."""

    view: WorkspaceView
    answer: Workspace
    encoded: bytes
    version: tuple[int, int]
    read_at: datetime
    changes_at: datetime | None
    "When time alone will make it look different."

    def is_fresh(self, version: tuple[int, int], now: datetime) -> bool:
        """Whether reading again would show the same."""
        return self.version == version and (self.changes_at is None or not self.read_at < self.changes_at < now)


class Snapshots:
    """Five hundred people who watch one workspace cost one reading per change. Made once, see `Context.part`."""

    LIMIT = 256
    "Workspaces kept; the oldest goes first."

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._changes: WorkspaceChangeFeed = ctx.part(WorkspaceChangeFeed)
        self._kept: dict[UUID, SharedReading] = {}
        self._reading: dict[UUID, trio.Event] = {}
        "Set when a reading that is under way has ended, however."

    async def get(self, workspace_id: UUID) -> SharedReading | None:
        """How the workspace looks now; the caller must be watching it. None for an unknown one."""
        while (kept := self._fresh(workspace_id)) is None:
            ends = self._reading.get(workspace_id)
            if ends is None:
                return await self._read_for_all(workspace_id)
            # An event, not a lock: five hundred who wait go on in one round, not one after the other.
            await ends.wait()
        return kept

    async def _read_for_all(self, workspace_id: UUID) -> SharedReading | None:
        ends = self._reading[workspace_id] = trio.Event()
        try:
            return await self._read(workspace_id)
        finally:
            del self._reading[workspace_id]
            ends.set()

    def _fresh(self, workspace_id: UUID) -> SharedReading | None:
        kept = self._kept.get(workspace_id)
        if kept is not None and kept.is_fresh(self._changes.version(workspace_id), self._ctx.clock.now()):
            return kept
        return None

    async def _read(self, workspace_id: UUID) -> SharedReading | None:
        ctx, version = self._ctx, self._changes.version(workspace_id)
        now = ctx.clock.now()
        view = await ctx.db.read(workspace_store.get_view, workspace_id)
        if view is None:
            return None
        page = await ctx.db.read(load_page, [view.latest], now, strict=strict_tags(ctx))
        answer = present_workspace(ctx, view, page)
        changes_at = _next_change(page, view.latest.job.id)
        found = SharedReading(view, answer, codec.encode(answer), version, now, changes_at)
        self._kept.pop(workspace_id, None)
        self._kept[workspace_id] = found
        while len(self._kept) > self.LIMIT:
            del self._kept[next(iter(self._kept))]
        return found


async def watch_workspace(ctx: Context, subject: Subject, workspace_id: UUID) -> AsyncIterator[msgspec.Raw | None]:
    """The workspace as JSON at once, then whenever it looks different. Raises NotFound before the first one."""
    async with aclosing(_watch_snapshots(ctx, subject, workspace_id)) as snapshots:  # type: ignore[type-var]
        async for found in snapshots:
            yield None if found is None else msgspec.Raw(found.encoded)


async def _watch_snapshots(ctx: Context, subject: Subject, workspace_id: UUID) -> AsyncIterator[SharedReading | None]:
    changes = ctx.part(WorkspaceChangeFeed)
    await changes.wait_ready()
    with changes.watch(workspace_id=workspace_id) as watch:
        shown = b""
        while not ctx.stopping.is_set():
            found = await ctx.part(Snapshots).get(workspace_id)
            if found is None or not may(subject, "read", workspace_resource(found.view.workspace)):
                if not shown:
                    raise NotFound
                return
            if found.encoded != shown:
                shown = found.encoded
                yield found
            silence = _seconds_until(found.changes_at, ctx.clock.now())
            if await _wait(watch, silence) is None:
                yield None
            watch.drain()


async def watch_connections(ctx: Context, subject: Subject, workspace_id: UUID) -> AsyncIterator[dict[str, Any] | None]:
    """What somebody who wants to connect waits for: the build's state, and each agent's, at once and when they change.

    Raises NotFound before the first one.
    """
    told: dict[str, Any] = {}
    async with aclosing(_watch_snapshots(ctx, subject, workspace_id)) as snapshots:  # type: ignore[type-var]
        async for found in snapshots:
            if found is None:
                yield None
                continue
            for key, event in _connection_events(found.answer).items():
                if told.get(key) != event:
                    told[key] = event
                    yield event


def _connection_events(workspace: Workspace) -> dict[str, dict[str, Any]]:
    build = workspace.latest_build
    said = {"id": build.id, "transition": build.transition, "job_status": build.job.status}
    events: dict[str, dict[str, Any]] = {"build": {"build_update": said}}
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


async def _wait(watch: Watch, seconds: float) -> Change | None:
    """The next change; None after `seconds`. When the server stops every watcher is told of a change."""
    with trio.move_on_after(seconds):
        return await watch.next()
    return None


def _next_change(page: LoadedPage, job_id: UUID) -> datetime | None:
    moments = [_changes_at(parts.agent) for parts in page.below.agents_of_job.get(job_id, ())]
    known = [moment for moment in moments if moment is not None]
    return min(known) if known else None


def _changes_at(agent: AgentRow) -> datetime | None:
    return status_changes_at(
        created_at=agent.created_at,
        first_connected_at=agent.first_connected_at,
        last_connected_at=agent.last_connected_at,
        disconnected_at=agent.disconnected_at,
        connection_timeout_seconds=agent.connection_timeout_seconds,
    )


def _seconds_until(moment: datetime | None, now: datetime) -> float:
    if moment is None or moment <= now:
        return _PING_EVERY
    return min((moment - now).total_seconds(), _PING_EVERY)


async def require_sight(ctx: Context, subject: Subject, agent_id: UUID) -> None:
    """Raises NotFound unless the agent's workspace may be seen, of whatever build the agent is.

    One that a newer build replaced says nothing more, and that is no loss of rights. Its workspace is asked about:
    an agent has no place of its own any more when the workspace is deleted, and sharing ends with that.
    """
    if not await _is_in_sight(ctx, subject, agent_id):
        raise NotFound(UNKNOWN)


async def _is_in_sight(ctx: Context, subject: Subject, agent_id: UUID) -> bool:
    row = await ctx.db.read(workspace_store.get_workspace_of_agent, agent_id)
    return row is not None and may(subject, "read", workspace_resource(row))


async def watch_metadata(
    ctx: Context, subject: Subject, agent_id: UUID
) -> AsyncIterator[list[WorkspaceAgentMetadata] | None]:
    """The whole set at once, then after every report. Raises NotFound before the first one."""
    await load_agent(ctx, subject, agent_id)
    changes = ctx.part(WorkspaceChangeFeed)
    await changes.wait_ready()
    with changes.watch(agent_id=agent_id) as watch:
        while not ctx.stopping.is_set():
            if not await _is_in_sight(ctx, subject, agent_id):
                return
            rows = await ctx.db.read(metadata_store.list_metadata, agent_id)
            yield [_present_metadata(row, ctx.clock.now()) for row in rows]
            change = await _wait(watch, _PING_EVERY)
            while not ctx.stopping.is_set() and (change is None or change.kind not in {"metadata", "resync"}):
                if change is None:
                    if not await _is_in_sight(ctx, subject, agent_id):
                        return
                    yield None
                change = await _wait(watch, _PING_EVERY)
            watch.drain()


def _present_metadata(row: MetadataRow, now: datetime) -> WorkspaceAgentMetadata:
    collected = row.collected_at
    return WorkspaceAgentMetadata(
        result=WorkspaceAgentMetadataResult(
            collected_at=collected or ZERO_TIME,
            age=int((now - collected).total_seconds()) if collected else 0,
            value=row.value,
            error=row.error,
        ),
        description=WorkspaceAgentMetadataDescription(
            display_name=row.display_name,
            key=row.key,
            script=row.script,
            interval=row.interval_seconds,
            timeout=row.timeout_seconds,
        ),
    )


async def follow_logs(
    ctx: Context, subject: Subject, agent_id: UUID, after: int = 0
) -> AsyncIterator[list[WorkspaceAgentLog] | None]:
    """Every stored line, then new ones as they come, in lists; ends when a newer build takes over.

    Raises NotFound before the first one.
    """
    workspace_id = (await load_agent(ctx, subject, agent_id)).workspace_id
    changes = ctx.part(WorkspaceChangeFeed)
    await changes.wait_ready()
    begun = False
    with changes.watch(agent_id=agent_id, workspace_id=workspace_id) as watch:
        while not ctx.stopping.is_set():
            place = await ctx.db.read(agent_store.get_agent_place, agent_id)
            if not await _is_in_sight(ctx, subject, agent_id):
                return
            rows = await ctx.db.read(log_store.list_logs, agent_id, after=after, limit=_LOG_PAGE)
            if rows:
                after = rows[-1].id
                yield present_logs(rows)
            elif not begun:
                yield None  # a handshake that waited for a first line would hold back a browser's next connections
            begun = True
            if len(rows) == _LOG_PAGE:
                continue
            if place is None:  # looked at before the lines: those are the last
                return
            if await _wait(watch, _PING_EVERY) is None:
                yield None
            watch.drain()


@dataclass(frozen=True, slots=True)
class ClaimWaiter:
    """An agent that waits until its workspace is given to somebody, by the token it showed."""

    workspace_id: UUID
    token: UUID


async def watch_claim(
    ctx: Context, waiter: ClaimWaiter, *, only_prebuilt: bool = False
) -> AsyncIterator[dict[str, str]]:
    """Says when a prebuilt workspace has been given to somebody, so that its agent starts anew. Silent until then.

    Raises Unauthenticated as soon as the agent would hear nothing more by its token; with `only_prebuilt` Conflict
    before the first one where nothing of that kind can come any more.
    """
    workspace_id = waiter.workspace_id
    async with ctx.db.listen(CLAIMED) as notices:
        if only_prebuilt and not await ctx.db.read(prebuild_store.may_be_given, workspace_id):
            raise Conflict(
                "Workspace is not a prebuilt workspace waiting to be claimed.",
                "This endpoint is only for agents running in prebuilt workspaces.",
            )
        looked = trio.current_time()
        while True:
            payload = await _next_notice(ctx, notices, looked + LOOK_EVERY)
            if ctx.stopping.is_set():
                return
            if payload not in {None, RESYNC, str(workspace_id)}:
                continue  # another's
            looked = trio.current_time()
            if not await ctx.db.read(_may_hear, waiter):
                raise Unauthenticated("Workspace agent not authorized.")
            missed = payload == RESYNC and not await ctx.db.read(prebuild_store.may_be_given, workspace_id)
            if payload != str(workspace_id) and not (missed and only_prebuilt):
                continue
            workspace = await ctx.db.read(workspace_store.get_workspace, workspace_id)
            if workspace is not None:
                yield {"workspace_id": str(workspace_id), "reason": CLAIMED, "owner_id": str(workspace.owner_id)}


async def _may_hear(tx: Tx, waiter: ClaimWaiter) -> bool:
    """While the build runs that gives a workspace away there is no agent of the newest build, and nobody has the token:
    that is what the agent waits for."""
    place = await find_by_token(tx, waiter.token)
    if place is not None:
        return place.workspace_id == waiter.workspace_id
    return await prebuild_store.may_be_given(tx, waiter.workspace_id)


async def _next_notice(ctx: Context, notices: trio.MemoryReceiveChannel[tuple[str, str]], until: float) -> str | None:
    """The next payload; None at that moment, and when the server stops."""
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
