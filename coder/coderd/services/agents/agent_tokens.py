"""First use of a rotated agent token: it revokes older tokens and rotates sub-agents' tokens, with an audit entry.

Rotation is `services/workspaces/external_agents.py`; the rule is `domain/agents/token_generations.py`.
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
from coder.coderd.store.provisioning import system_jobs

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import CurrentAgent
    from coder.coderd.store.engine.database import Tx

_log = get_logger("agents")


async def note_use(ctx: Context, current: CurrentAgent, token: UUID, remote_ip: str) -> None:
    """Note an authentication with a rotated token; only the first one has effects."""
    if not await ctx.db.read(_is_waiting, current, token):
        return
    if await ctx.db.run(_note_first_use, current, token, remote_ip, ctx.clock.now()):
        _log.info("an agent uses its new token; older ones are revoked", agent=current.agent.id)


async def _is_waiting(tx: Tx, current: CurrentAgent, token: UUID) -> bool:
    rows = await token_store.list_agent_tokens(tx, current.workspace_id, current.agent)
    return any(row.token == token and row.used_at is None for row in rows)


async def _note_first_use(tx: Tx, current: CurrentAgent, token: UUID, remote_ip: str, now: datetime) -> bool:
    # Locked as in the creation of sub-agents: an earlier one by the old token is seen below, a later one is rejected.
    await system_jobs.get_job(tx, current.agent.job_id, lock=True)
    before = await audit_store.take_snapshot(tx, "workspace", current.workspace_id)
    if not await token_store.mark_used(tx, token, now):
        return False
    for child in await agent_store.list_sub_agents(tx, current.agent.id):
        # The holder of the old token knows the children's tokens. The agent with the new token requests new ones.
        await agent_store.update_agent(tx, child.id, auth_token=new_uuid())
    after = await audit_store.take_snapshot(tx, "workspace", current.workspace_id)
    fields = {"agent_name": current.agent.name, "reason": "the agent used its new token"}
    event = AuditEvent("workspace", "write", Origin(ip=remote_ip), 200, before, after, additional=fields)
    await audit.write(tx, event, now)
    return True
