"""The table of server processes that share this database. A row that was not renewed for a while belongs to a dead
process."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from coder.coderd.store.engine.metadata import Timestamp, Uuid, metadata

replicas = Table(
    "replicas",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("hostname", Text, nullable=False),
    Column("region_id", Integer, nullable=False),
    Column("relay_address", Text, nullable=False, server_default=""),
    Column("database_latency_us", BigInteger, nullable=False, server_default="0"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("version", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
)
