"""Table of staged rollouts of template versions (ours)."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, SmallInteger, Table, Text, text

from coder.coderd.store.engine.metadata import Json, Timestamp, Uuid, metadata

template_rollouts = Table(
    "template_rollouts",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("template_id", Uuid, ForeignKey("templates.id", ondelete="CASCADE"), nullable=False),
    Column("template_version_id", Uuid, ForeignKey("template_versions.id", ondelete="CASCADE"), nullable=False),
    # The active version when the rollout began. No foreign key, as at the template.
    Column("former_version_id", Uuid, nullable=False),
    Column("group_id", Uuid, ForeignKey("groups.id", ondelete="SET NULL")),
    Column("stages", Json, nullable=False),
    Column("percent", SmallInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("message", Text, nullable=False, server_default=""),
    Column("failure_percent", SmallInteger, nullable=False),
    Column("minimum_builds", Integer, nullable=False),
    Column("created_by", Uuid, ForeignKey("users.id"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("stage_started_at", Timestamp, nullable=False),
    Column("ended_at", Timestamp),
    Index("ix_template_rollouts_template_id_created_at", "template_id", "created_at"),
)
"""`stages` is a list of percentages, `percent` the current one."""

Index(
    "ix_template_rollouts_open",
    template_rollouts.c.template_id,
    unique=True,
    postgresql_where=text("status IN ('running', 'stopped')"),
)
