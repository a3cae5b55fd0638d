"""Streams of an agent: its metadata and its logs, now and after every change.

A stream listens before it reads for the first time, so it misses no change. Streams end when the user may no longer
read the workspace, and when the server stops.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.agents.agents import (
    WorkspaceAgentMetadata,
    WorkspaceAgentMetadataDescription,
    WorkspaceAgentMetadataResult,
)
from coder.api.base.refusals import NotFound
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.services.agents.agent_access import UNKNOWN, load_agent
from coder.coderd.services.agents.agent_logs import present_logs
from coder.coderd.services.workspaces.change_feed import PING_EVERY
from coder.coderd.store.agents import agent_logs as log_store
from coder.coderd.store.agents import agent_metadata as metadata_store
from coder.coderd.store.agents import system_agents
from coder.coderd.store.agents.agent_metadata import MetadataRow
from coder.coderd.store.workspaces import system_workspaces
from coder.domain.access.policy import Subject
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_LOG_PAGE = 1000


async def require_agent_read(ctx: Context, subject: Subject, agent_id: UUID) -> None:
    """Raise NotFound unless the user may see the agent's workspace, whichever build the agent belongs to.

    A newer build replaces an agent, which is no loss of rights. The workspace is checked, not the agent: deleting the
    workspace takes away the agent's location, and ends its sharing.
    """
    if not await _may_read(ctx, subject, agent_id):
        raise NotFound(UNKNOWN)


async def _may_read(ctx: Context, subject: Subject, agent_id: UUID) -> bool:
    row = await ctx.db.read(system_workspaces.get_workspace_of_agent, agent_id)
    return row is not None and may(subject, "read", workspace_resource(row))


async def watch_metadata(
    ctx: Context, subject: Subject, agent_id: UUID
) -> AsyncIterator[list[WorkspaceAgentMetadata] | None]:
    """Yield all metadata at once, then again after every report. Raises NotFound before the first item."""
    await load_agent(ctx, subject, agent_id)
    changes = ctx.services.api.workspace_changes
    await changes.wait_ready()
    with changes.watch(agent_id=agent_id) as watch:
        while not ctx.stopping.is_set():
            if not await _may_read(ctx, subject, agent_id):
                return
            rows = await ctx.db.read(metadata_store.list_metadata, agent_id)
            yield [_present_metadata(row, ctx.clock.now()) for row in rows]
            change = await watch.next_within(PING_EVERY)
            while not ctx.stopping.is_set() and (change is None or change.kind not in {"metadata", "resync"}):
                if change is None:
                    if not await _may_read(ctx, subject, agent_id):
                        return
                    yield None
                change = await watch.next_within(PING_EVERY)
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
    """Yield every stored line, then new lines as they arrive, in lists. Ends when a newer build replaces the agent.

    Raises NotFound before the first item.
    """
    workspace_id = (await load_agent(ctx, subject, agent_id)).workspace_id
    changes = ctx.services.api.workspace_changes
    await changes.wait_ready()
    started = False
    with changes.watch(agent_id=agent_id, workspace_id=workspace_id) as watch:
        while not ctx.stopping.is_set():
            location = await ctx.db.read(system_agents.get_current_agent, agent_id)
            if not await _may_read(ctx, subject, agent_id):
                return
            rows = await ctx.db.read(log_store.list_logs, agent_id, after=after, limit=_LOG_PAGE)
            if rows:
                after = rows[-1].id
                yield present_logs(rows)
            elif not started:
                yield None  # a handshake that waited for the first line would delay a browser's next connections
            started = True
            if len(rows) == _LOG_PAGE:
                continue
            if location is None:  # the location was read before the lines, so these are the last ones
                return
            if await watch.next_within(PING_EVERY) is None:
                yield None
            watch.drain()
