"""Tables of provisioner daemons and of the keys they may authenticate with."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Table, Text, func, text

from coder.coderd.store.engine.metadata import Bytes, Json, TextArray, Timestamp, Uuid, metadata

provisioner_keys = Table(
    "provisioner_keys",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("organization_id", Uuid, ForeignKey("organizations.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("tags", Json, nullable=False, server_default=text("'{}'::jsonb")),
    Column("hashed_secret", Bytes, nullable=False, unique=True),
)
Index(
    "ix_provisioner_keys_organization_id_name",
    provisioner_keys.c.organization_id,
    func.lower(provisioner_keys.c.name),
    unique=True,
)

provisioner_daemons = Table(
    "provisioner_daemons",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, ForeignKey("organizations.id", ondelete="CASCADE"), nullable=False),
    # No foreign key: three reserved ids stand for daemons without a key (domain/provisioning/provisioners.py).
    Column("key_id", Uuid, nullable=False),
    # User whose session it used; such daemons share one reserved key, so the key alone does not identify them.
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="SET NULL")),
    Column("created_at", Timestamp, nullable=False),
    Column("last_seen_at", Timestamp),
    # Newest link, while it is open: ends and measurements of older links are ignored.
    Column("link_id", Uuid),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False, server_default=""),
    Column("api_version", Text, nullable=False, server_default="1.0"),
    Column("provisioners", TextArray, nullable=False),
    Column("tags", Json, nullable=False),
)
# One row per machine and owner: a daemon that reconnects finds its own row.
Index(
    "ix_provisioner_daemons_identity",
    provisioner_daemons.c.organization_id,
    func.lower(provisioner_daemons.c.name),
    func.coalesce(provisioner_daemons.c.tags["owner"].astext, text("''")),
    unique=True,
)

# Result of the last poll over the mesh; a daemon that does not join has no row.
provisioner_daemon_health = Table(
    "provisioner_daemon_health",
    metadata,
    Column("daemon_id", Uuid, ForeignKey("provisioner_daemons.id", ondelete="CASCADE"), primary_key=True),
    Column("measured_at", Timestamp, nullable=False),
    Column("answered_at", Timestamp),
    Column("unreachable_since", Timestamp),
    Column("latency", Float),
    Column("problem", Text, nullable=False, server_default=""),
    Column("report", Json, nullable=False, server_default=text("'{}'::jsonb")),
)
