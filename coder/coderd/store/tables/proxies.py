"""Tables of workspace proxies and of their processes. A proxy's secret is stored as a hash."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Identity, Index, Integer, Table, Text, func, text

from coder.coderd.store.engine.metadata import Bytes, Timestamp, Uuid, metadata

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

workspace_proxy_replicas = Table(
    "workspace_proxy_replicas",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("proxy_id", Uuid, ForeignKey("workspace_proxies.id", ondelete="CASCADE"), nullable=False),
    Column("hostname", Text, nullable=False, server_default=""),
    Column("relay_address", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False, server_default=""),
    Column("version", Text, nullable=False, server_default=""),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Index("ix_workspace_proxy_replicas_proxy_id", "proxy_id"),
)
