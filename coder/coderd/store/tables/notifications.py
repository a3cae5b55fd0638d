"""Tables of notifications: messages to send, the inbox, preferences, and marks of sent messages.

Web Push subscriptions are in `web_push.py`.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from coder.coderd.store.engine.metadata import Json, TextArray, Timestamp, Uuid, metadata

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
"""`status`: pending, sent, failed (given up), inhibited (disabled by the receiver)."""

notification_marks = Table(
    "notification_marks",
    metadata,
    Column("template_id", Uuid, primary_key=True),
    Column("about", Uuid, primary_key=True),
    Column("mark", Text, nullable=False),
    Column("marked_at", Timestamp, nullable=False),
)
"""Last mark of a message that is sent once: a build's deadline, a preset's failures, a report's time."""

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
"""Templates with a delivery method other than the deployment's."""

inbox_notifications = Table(
    "inbox_notifications",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("template_id", Uuid, nullable=False),
    Column("targets", TextArray, nullable=False, server_default="{}"),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("icon", Text, nullable=False, server_default=""),
    Column("actions", Json, nullable=False, server_default=text("'[]'::jsonb")),
    Column("read_at", Timestamp),
    Column("created_at", Timestamp, nullable=False),
    Index("ix_inbox_notifications_user_id_created_at", "user_id", "created_at"),
)
