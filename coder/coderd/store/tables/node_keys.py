"""The table of public keys announced by nodes of the overlay, with their first owner."""

from __future__ import annotations

from sqlalchemy import Column, Index, Table, Text

from coder.coderd.store.engine.metadata import Bytes, Timestamp, metadata

node_keys = Table(
    "node_keys",
    metadata,
    Column("key", Bytes, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("seen_at", Timestamp, nullable=False),
)
Index("ix_node_keys_owner_seen_at", node_keys.c.owner, node_keys.c.seen_at)
