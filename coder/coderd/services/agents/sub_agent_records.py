"""Parts that creation and deletion of sub-agents share: the parent's lock, port shares, the audit log, the message."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from coder.coderd.services.agents.agent_access import find_current_agent
from coder.coderd.services.audit import audit
from coder.coderd.services.audit.audit import AuditEvent, Origin
from coder.coderd.store.access.keys import notify_sharing_revoked
from coder.coderd.store.agents.agents import AgentRow, CurrentAgent
from coder.coderd.store.audit import audit as audit_store
from coder.coderd.store.audit.audit import AuditSnapshot
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.workspaces import port_shares as share_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_NO_RIGHT = "the agent's token is no longer valid"


async def require_right(tx: Tx, current: CurrentAgent) -> None:
    """Require the parent's current token, whose rotation also rotates the tokens of its children. Raises RpcError."""
    if await find_current_agent(tx, current) is None:
        raise RpcError(0, _NO_RIGHT)


async def lock_parent(tx: Tx, current: CurrentAgent) -> None:
    """Lock the parent's job, so that concurrent changes and rotations see each other. Raises RpcError."""
    await system_jobs.get_job(tx, current.agent.job_id, lock=True)
    await require_right(tx, current)


async def end_port_shares(tx: Tx, current: CurrentAgent, row: AgentRow) -> None:
    """Delete port shares, which refer to the agent's name: the next agent of that name is another container."""
    if await share_store.delete_port_shares_of(tx, current.workspace_id, row.name):
        await notify_sharing_revoked(tx)


async def record_change(
    tx: Tx, current: CurrentAgent, row: AgentRow, reason: str, before: AuditSnapshot | None, now: datetime
) -> None:
    """Notify watchers and write the audit entry of a created or deleted sub-agent."""
    await notify_change(tx, "state", owner_id=current.owner_id, workspace_id=current.workspace_id)
    after = await audit_store.take_snapshot(tx, "workspace", current.workspace_id)
    fields = {"agent_name": row.name, "parent_agent_name": current.agent.name, "reason": reason}
    await audit.write(tx, AuditEvent("workspace", "write", Origin(), 200, before, after, additional=fields), now)


def present_sub_agent(row: AgentRow) -> agent_pb2.SubAgent:
    return agent_pb2.SubAgent(name=row.name, id=row.id.bytes, auth_token=row.auth_token.bytes)
