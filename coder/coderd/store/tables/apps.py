"""The table of applications in use.

Statistics outlive the users they count (NIL stands for anonymous visitors), but not the workspace.
"""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from coder.coderd.store.engine.metadata import Timestamp, Uuid, metadata

workspace_app_stats = Table(
    "workspace_app_stats",
    metadata,
    Column("session_id", Uuid, primary_key=True),
    Column("user_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("template_id", Uuid, nullable=False),
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), nullable=False),
    Column("access_method", Text, nullable=False),
    Column("slug_or_port", Text, nullable=False),
    Column("session_started_at", Timestamp, nullable=False),
    Column("session_ended_at", Timestamp, nullable=False),
    Column("requests", Integer, nullable=False),
    Index("ix_workspace_app_stats_session_ended_at", "session_ended_at"),
)
