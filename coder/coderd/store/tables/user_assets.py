"""Tables of what users keep for their workspaces (secrets, skills) and of the site's workspace proxies.

A secret's value is stored as `services/foundation/encryption_at_rest.py` writes it; a proxy's secret as a hash.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Identity, Index, Integer, Table, Text, UniqueConstraint, func, text

from coder.coderd.store.engine.metadata import Bytes, Timestamp, Uuid, metadata

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

workspace_proxies = Table(
    "workspace_proxies",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("display_name", Text, nullable=False, server_default=""),
    Column("icon", Text, nullable=False, server_default=""),
    Column("url", Text, nullable=False, server_default=""),
    Column("wildcard_hostname", Text, nullable=False, server_default=""),
    Column("derp_enabled", Boolean, nullable=False, server_default=text("true")),
    Column("derp_only", Boolean, nullable=False, server_default=text("false")),
    Column("version", Text, nullable=False, server_default=""),
    Column("hashed_secret", Bytes, nullable=False),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("region_id", Integer, Identity(), nullable=False),
)
Index(
    "ix_workspace_proxies_name_living",
    func.lower(workspace_proxies.c.name),
    unique=True,
    postgresql_where=text("NOT deleted"),
)
