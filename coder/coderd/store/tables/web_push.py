"""The table of Web Push subscriptions."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Table, Text, UniqueConstraint

from coder.coderd.store.engine.metadata import Timestamp, Uuid, metadata

webpush_subscriptions = Table(
    "webpush_subscriptions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("p256dh_key", Text, nullable=False),
    Column("auth_key", Text, nullable=False),
    UniqueConstraint("user_id", "endpoint"),
)
