"""Usage of a workspace as its clients report it: statistics of the app, and the time of last use."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coder.coderd.services.access.workspace_access import lock_workspace
from coder.coderd.store.agents import agent_stats as stats_store
from coder.coderd.store.agents import system_agents
from coder.domain.access.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

_APPS = frozenset({"vscode", "jetbrains", "reconnecting-pty", "ssh"})


async def record_usage(ctx: Context, subject: Subject, workspace_id: UUID, agent_id: UUID | None, app: str) -> None:
    """Record a use of the workspace. Unknown agents and apps are ignored, as upstream does."""
    now = ctx.clock.now()
    await ctx.db.run(_record_usage, subject, workspace_id, agent_id, app, now)
    ctx.services.last_use.note(workspace_id, now)


async def _record_usage(
    tx: Tx, subject: Subject, workspace_id: UUID, agent_id: UUID | None, app: str, now: datetime
) -> None:
    row = (await lock_workspace(tx, subject, workspace_id)).workspace
    location = await system_agents.get_current_agent(tx, agent_id) if agent_id is not None and app in _APPS else None
    if location is not None and location.workspace_id == row.id:
        stats: stats_store.AgentStats = {
            "created_at": now,
            "user_id": row.owner_id,
            "workspace_id": row.id,
            "template_id": row.template_id,
            "agent_id": location.agent.id,
            "usage": True,
        }
        counts: dict[str, Any] = {f"session_count_{app.replace('-', '_')}": 1}
        await stats_store.insert_stats(tx, **stats, **counts)
