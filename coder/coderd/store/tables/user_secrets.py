"""The table of users' secrets for their workspaces.

A value is stored in the form of `services/foundation/encryption_at_rest.py`.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Table, Text, UniqueConstraint, text

from coder.coderd.store.engine.metadata import Timestamp, Uuid, metadata

user_secrets = Table(
    "user_secrets",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("env_name", Text, nullable=False, server_default=""),
    Column("file_path", Text, nullable=False, server_default=""),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("value", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    UniqueConstraint("user_id", "name"),
)
for _column in ("env_name", "file_path"):
    Index(
        f"ix_user_secrets_user_id_{_column}",
        user_secrets.c.user_id,
        user_secrets.c[_column],
        unique=True,
        postgresql_where=text(f"{_column} <> ''"),
    )
