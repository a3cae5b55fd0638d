"""The tables of plain WireGuard clients. Their private keys are never stored."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY

from coder.coderd.store.engine.metadata import Bytes, Timestamp, Uuid, metadata

wireguard_clients = Table(
    "wireguard_clients",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Uuid, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("public_key", Bytes, nullable=False, unique=True),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp),
    Column("workspace_ids", ARRAY(Uuid)),
)
"`workspace_ids` NULL: every workspace its owner may reach; `expires_at` NULL: until removed."
Index(
    "ix_wireguard_clients_user_id_name",
    wireguard_clients.c.user_id,
    func.lower(wireguard_clients.c.name),
    unique=True,
)

wireguard_reach = Table(
    "wireguard_reach",
    metadata,
    Column("client_id", Uuid, ForeignKey("wireguard_clients.id", ondelete="CASCADE"), primary_key=True),
    Column("standing", Text, nullable=False),
    Column("workspaces", ARRAY(Uuid), nullable=False),
    Column("revision", BigInteger, nullable=False),
)
"""Last access recorded in the audit log (services/wireguard/wireguard_audit.py); `revision` grows with every change."""
