"""Insertion of agents' statistics: connections, bytes, sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import UUID

from sqlalchemy.dialects.postgresql import insert

from coder.coderd.store.tables.agents import workspace_agent_stats

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


class AgentStats(TypedDict, total=False):
    """Columns of `workspace_agent_stats` that may be set, by name."""

    created_at: datetime
    user_id: UUID
    workspace_id: UUID
    template_id: UUID
    agent_id: UUID
    connections_by_proto: dict[str, int]
    connection_count: int
    connection_median_latency_ms: float
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    session_count_vscode: int
    session_count_jetbrains: int
    session_count_reconnecting_pty: int
    session_count_ssh: int
    usage: bool


async def insert_stats(tx: Tx, **values: Unpack[AgentStats]) -> None:
    """Insert one report of an agent's statistics; names as in the table."""
    await tx.execute(insert(workspace_agent_stats).values(**values))


async def insert_all_stats(tx: Tx, rows: Sequence[AgentStats]) -> None:
    """Insert reports of many agents: one statement. All of them set the same columns."""
    await tx.execute(insert(workspace_agent_stats), [dict(row) for row in rows])
