"""The first use of a rotated token: it ends the older generations and what came of them, and the audit log hears of it.

Rotating is `services/workspaces/external_agents.py`; the rule is `domain/agents/token_generations.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.ids import new_uuid
from coder.base.log import get_logger
from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.store.agents import agent_tokens as token_store
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.audit import audit as audit_store
from coder.coderd.store.provisioning import jobs as job_store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import AgentPlace
    from coder.coderd.store.engine.database import Tx

_log = get_logger("agents")


async def note_use(ctx: Context, place: AgentPlace, token: UUID, remote_ip: str) -> None:
    """Called at every authentication with a rotated token; the first one counts."""
    if not await ctx.db.read(_is_waiting, place, token):
        return
    if await ctx.db.run(_note_first_use, place, token, remote_ip, ctx.clock.now()):
        _log.info("an agent uses its new token; older ones are good no longer", agent=place.agent.id)


async def _is_waiting(tx: Tx, place: AgentPlace, token: UUID) -> bool:
    rows = await token_store.list_agent_tokens(tx, place.workspace_id, place.agent)
    return any(row.token == token and row.used_at is None for row in rows)


async def _note_first_use(tx: Tx, place: AgentPlace, token: UUID, remote_ip: str, now: datetime) -> bool:
    # Held as by whoever makes a sub-agent: one the old token was allowed is seen below, and a later one is refused.
    await job_store.get_job(tx, place.agent.job_id, lock=True)
    before = await audit_store.take_snapshot(tx, "workspace", place.workspace_id)
    if not await token_store.mark_used(tx, token, now):
        return False
    for child in await agent_store.list_sub_agents(tx, place.agent.id):
        # Who had the old token was told theirs. The agent that comes with the new one asks for them anew.
        await agent_store.update_agent(tx, child.id, auth_token=new_uuid())
    after = await audit_store.take_snapshot(tx, "workspace", place.workspace_id)
    said = {"agent_name": place.agent.name, "reason": "the agent came with its new token"}
    event = AuditEvent("workspace", "write", Origin(ip=remote_ip), 200, before, after, additional=said)
    await audit.write(tx, event, now)
    return True
