"""Tables of the audit log and the connection log.

Rows carry no foreign keys: they outlive the objects they name.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text, text

from coder.coderd.store.engine.metadata import Json, Timestamp, Uuid, metadata

audit_logs = Table(
    "audit_logs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("time", Timestamp, nullable=False),
    Column("user_id", Uuid),
    Column("organization_id", Uuid),
    Column("ip", Text, nullable=False, server_default=""),
    Column("user_agent", Text, nullable=False, server_default=""),
    Column("resource_type", Text, nullable=False),
    Column("resource_id", Uuid, nullable=False),
    Column("resource_target", Text, nullable=False, server_default=""),
    Column("resource_icon", Text, nullable=False, server_default=""),
    Column("action", Text, nullable=False),
    Column("diff", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("status_code", Integer, nullable=False),
    Column("additional_fields", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("request_id", Uuid, nullable=False),
    Index("ix_audit_logs_time", "time"),
    Index("ix_audit_logs_user_id", "user_id"),
    Index("ix_audit_logs_resource_id", "resource_id"),
)

connection_logs = Table(
    "connection_logs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("connect_time", Timestamp, nullable=False),
    Column("organization_id", Uuid, nullable=False),
    Column("workspace_owner_id", Uuid, nullable=False),
    Column("workspace_id", Uuid, nullable=False),
    Column("workspace_name", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("ip", Text, nullable=False, server_default=""),
    Column("code", Integer),
    Column("user_agent", Text),
    Column("user_id", Uuid),
    Column("slug_or_port", Text),
    Column("connection_id", Uuid),
    Column("disconnect_time", Timestamp),
    Column("disconnect_reason", Text),
    Index("ix_connection_logs_connect_time", "connect_time"),
    Index("ix_connection_logs_workspace_id", "workspace_id"),
)
# An agent may report an end without a beginning, or a beginning twice: both find the row by these.
Index(
    "ix_connection_logs_connection",
    connection_logs.c.connection_id,
    connection_logs.c.workspace_id,
    connection_logs.c.agent_name,
    unique=True,
)
