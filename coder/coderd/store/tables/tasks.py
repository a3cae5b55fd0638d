"""Tables of tasks: prompts run in a workspace of their own, and the last statuses of their apps.

A deleted task keeps its row (`deleted_at`), so that its deleted workspace can still name it. The app of a build that
reports for the task is a column of the build (`workspace_builds.ai_task_app_id`).
"""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Table, Text, func, text

from coder.coderd.store.engine.metadata import Json, Timestamp, Uuid, metadata

tasks = Table(
    "tasks",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, ForeignKey("organizations.id", ondelete="CASCADE"), nullable=False),
    Column("owner_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="SET NULL")),
    Column("template_version_id", Uuid, ForeignKey("template_versions.id", ondelete="CASCADE"), nullable=False),
    Column("prompt", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("deleted_at", Timestamp),
    Index("ix_tasks_workspace_id", "workspace_id"),
    Index("ix_tasks_organization_id", "organization_id"),
    Index("ix_tasks_template_version_id", "template_version_id"),
)
Index(
    "ix_tasks_owner_id_name_living",
    tasks.c.owner_id,
    func.lower(tasks.c.name),
    unique=True,
    postgresql_where=text("deleted_at IS NULL"),
)

task_snapshots = Table(
    "task_snapshots",
    metadata,
    Column("task_id", Uuid, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Column("messages", Json, nullable=False),
    Column("created_at", Timestamp, nullable=False),
)
"""The conversation when the workspace stopped: `logs` shows it until the workspace runs again."""
