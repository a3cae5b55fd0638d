"""Changes of an agent's row, announced to the followers of its workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agents import AgentChanges, CurrentAgent
from coder.coderd.store.workspaces.change_feed import Kind as Change
from coder.coderd.store.workspaces.change_feed import notice_of, notify_change

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def update_agent(tx: Tx, current: CurrentAgent, kind: Change, values: AgentChanges) -> None:
    notice = notice_of(kind, current.owner_id, current.workspace_id, current.agent.id)
    await agent_store.update_agent(tx, current.agent.id, notice, **values)


async def notify_agent_change(tx: Tx, current: CurrentAgent, kind: Change) -> None:
    await notify_change(
        tx, kind, owner_id=current.owner_id, workspace_id=current.workspace_id, agent_id=current.agent.id
    )
