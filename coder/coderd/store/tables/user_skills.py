"""The table of users' skills for their agents."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Table, Text, UniqueConstraint

from coder.coderd.store.engine.metadata import Timestamp, Uuid, metadata

user_skills = Table(
    "user_skills",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("content", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    UniqueConstraint("user_id", "name"),
)
