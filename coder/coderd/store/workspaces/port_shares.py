"""Queries on shared ports of agents. An expired share counts as absent in every query; its row is kept for a day."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import and_, or_, select
from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.tables.workspaces import workspace_port_shares, workspaces
from coder.domain.foundation.share_levels import SHARE_LEVELS, wider_levels

if TYPE_CHECKING:
    from coder.api.agents.agent_ports import WorkspaceAgentPortShareProtocol
    from coder.api.base.enums import WorkspaceAgentPortShareLevel
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class PortShareRow:
    workspace_id: UUID
    agent_name: str
    port: int
    share_level: WorkspaceAgentPortShareLevel
    protocol: WorkspaceAgentPortShareProtocol
    expires_at: datetime | None = None


async def list_port_shares(tx: Tx, workspace_id: UUID, now: datetime) -> list[PortShareRow]:
    """Return the shares valid at `now`."""
    table = workspace_port_shares
    holds = or_(table.c.expires_at.is_(None), table.c.expires_at > now)
    query = select(*(table.c[f.name] for f in fields(PortShareRow))).where(table.c.workspace_id == workspace_id, holds)
    return [PortShareRow(*row) for row in await tx.execute(query.order_by(table.c.agent_name, table.c.port))]


async def end_of_port_share(tx: Tx, share: PortShareRow) -> datetime | None:
    """Return when the stored share of the same port expires, or did; None without a share or an expiry."""
    table = workspace_port_shares
    query = select(table.c.expires_at).where(
        table.c.workspace_id == share.workspace_id,
        table.c.agent_name == share.agent_name,
        table.c.port == share.port,
    )
    return (await tx.execute(query)).scalar_one_or_none()


async def put_port_share(tx: Tx, share: PortShareRow) -> None:
    values = {f.name: getattr(share, f.name) for f in fields(PortShareRow)}
    statement = insert(workspace_port_shares).values(values)
    await tx.execute(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "agent_name", "port"],
            set_={name: statement.excluded[name] for name in ("share_level", "protocol", "expires_at")},
        )
    )


async def narrow_port_shares(tx: Tx, template_id: UUID, limit: str) -> None:
    """Reduce the shares of a template's workspaces to a level; with the limit `owner`, delete them."""
    table = workspace_port_shares
    affected = select(workspaces.c.id).where(workspaces.c.template_id == template_id)
    is_wider = and_(table.c.workspace_id.in_(affected), table.c.share_level.in_(wider_levels(limit)))
    if limit == SHARE_LEVELS[0]:
        await tx.execute(table.delete().where(is_wider))
    else:
        await tx.execute(table.update().where(is_wider).values(share_level=limit))


async def delete_port_shares(tx: Tx, workspace_id: UUID) -> None:
    """Delete all shares of a workspace."""
    await tx.execute(workspace_port_shares.delete().where(workspace_port_shares.c.workspace_id == workspace_id))


async def delete_port_shares_of(tx: Tx, workspace_id: UUID, agent_name: str) -> bool:
    """Delete all shares of one agent. False when there was none."""
    table = workspace_port_shares
    statement = table.delete().where(table.c.workspace_id == workspace_id, table.c.agent_name == agent_name)
    return bool((await tx.execute(statement)).rowcount)


async def delete_port_share(tx: Tx, workspace_id: UUID, agent_name: str, port: int) -> bool:
    """Delete a share. False when there was none."""
    table = workspace_port_shares
    statement = table.delete().where(
        table.c.workspace_id == workspace_id, table.c.agent_name == agent_name, table.c.port == port
    )
    return bool((await tx.execute(statement)).rowcount)
