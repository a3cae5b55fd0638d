"""Tables of what the server does and says by itself: audit and connection logs, messages, status history.

Log rows carry no foreign keys: they outlive what they speak of. A user's status history is written by a trigger of the
migration, so that no service can forget it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Identity, Index, Integer, Table, Text, text

from coder.coderd.store.engine.metadata import Json, TextArray, Timestamp, Uuid, metadata

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
# An agent may report an end without a beginning, or one beginning twice: both find the row by these.
Index(
    "ix_connection_logs_connection",
    connection_logs.c.connection_id,
    connection_logs.c.workspace_id,
    connection_logs.c.agent_name,
    unique=True,
)

notification_messages = Table(
    "notification_messages",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("template_id", Uuid, nullable=False),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("method", Text, nullable=False),
    Column("payload", Json, nullable=False),
    Column("targets", TextArray, nullable=False, server_default="{}"),
    Column("status", Text, nullable=False, server_default="pending"),
    Column("status_reason", Text, nullable=False, server_default=""),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("next_try_at", Timestamp, nullable=False),
    Index("ix_notification_messages_due", "next_try_at", postgresql_where=text("status = 'pending'")),
)
"""`status`: pending, sent, failed (given up), inhibited (the receiver did not want it)."""

notification_marks = Table(
    "notification_marks",
    metadata,
    Column("template_id", Uuid, primary_key=True),
    Column("about", Uuid, primary_key=True),
    Column("mark", Text, nullable=False),
    Column("marked_at", Timestamp, nullable=False),
)
"""What a message that goes out once was told of last: a build's deadline, a preset's failures, a report's time."""

resource_monitors = Table(
    "resource_monitors",
    metadata,
    Column("agent_id", Uuid, ForeignKey("workspace_agents.id", ondelete="CASCADE"), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("quiet_until", Timestamp),
)
"""The standing of what a template wants watched in an agent; an empty path is its memory."""

notification_preferences = Table(
    "notification_preferences",
    metadata,
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("template_id", Uuid, primary_key=True),
    Column("disabled", Boolean, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
)

notification_methods = Table(
    "notification_methods",
    metadata,
    Column("template_id", Uuid, primary_key=True),
    Column("method", Text, nullable=False),
)
"""Templates that go out another way than the deployment's own."""

user_status_changes = Table(
    "user_status_changes",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("status", Text, nullable=False),
    Column("changed_at", Timestamp, nullable=False),
    Index("ix_user_status_changes_user_id", "user_id", "changed_at"),
)
"""`status` is a user's new status, or `deleted`. The id orders changes of one moment."""
