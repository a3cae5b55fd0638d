"""The table of nodes that are too large for a NOTIFY: the last node of each peer, for other replicas to read."""

from __future__ import annotations

from sqlalchemy import Column, Table

from coder.coderd.store.engine.metadata import Bytes, Timestamp, Uuid, metadata

large_nodes = Table(
    "large_nodes",
    metadata,
    Column("peer_id", Uuid, primary_key=True),
    Column("node", Bytes, nullable=False),
    Column("told_at", Timestamp, nullable=False),
)
