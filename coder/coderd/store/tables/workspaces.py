"""Tables of workspaces and their shared ports.

`latest_build_id` repeats the build with the highest number: the list joins on it instead of searching, and an agent is
current exactly when its build is the one named here. It carries no foreign key because the two rows point at each
other. Access lists map the id of a user or group to its role, `use` or `admin`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, func, text

from coder.coderd.store.engine.metadata import Json, Timestamp, Uuid, metadata

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("owner_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("organization_id", Uuid, ForeignKey("organizations.id"), nullable=False),
    Column("template_id", Uuid, ForeignKey("templates.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Column("autostart_schedule", Text),
    Column("ttl_ms", BigInteger),
    Column("last_used_at", Timestamp, nullable=False),
    Column("dormant_at", Timestamp),
    Column("deleting_at", Timestamp),
    Column("next_start_at", Timestamp),
    Column("automatic_updates", Text, nullable=False, server_default="never"),
    Column("favorite", Boolean, nullable=False, server_default=text("false")),
    Column("user_acl", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("group_acl", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("latest_build_id", Uuid),
    Index("ix_workspaces_template_id", "template_id"),
)
Index(
    "ix_workspaces_owner_id_name_living",
    workspaces.c.owner_id,
    func.lower(workspaces.c.name),
    unique=True,
    postgresql_where=text("NOT deleted"),
)

workspace_port_shares = Table(
    "workspace_port_shares",
    metadata,
    Column("workspace_id", Uuid, ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True),
    Column("agent_name", Text, primary_key=True),
    Column("port", Integer, primary_key=True),
    Column("share_level", Text, nullable=False),
    Column("protocol", Text, nullable=False, server_default="http"),
    Column("expires_at", Timestamp, index=True),
)
