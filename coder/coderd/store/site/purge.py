"""Queries that forget what is too old to matter. Each takes a time and answers how many rows went.

A batch at a time: the first purge of an old database must not hold its tables for minutes.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, text

from coder.coderd.store.engine.metadata import Timestamp

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

BATCH = 10_000
_BEFORE = bindparam("before", type_=Timestamp)

_AGENT_LOGS = text(
    """DELETE FROM workspace_agent_logs WHERE id IN (
        SELECT l.id FROM workspace_agent_logs l JOIN workspace_agents a ON a.id = l.agent_id
        WHERE coalesce(a.last_connected_at, a.created_at) < :before AND NOT EXISTS (
            SELECT 1 FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
            WHERE b.job_id = a.job_id AND NOT w.deleted)
        LIMIT :batch)"""
).bindparams(_BEFORE)
_STATS = text(
    "DELETE FROM workspace_agent_stats WHERE id IN "
    "(SELECT id FROM workspace_agent_stats WHERE created_at < :before LIMIT :batch)"
).bindparams(_BEFORE)
_APP_STATS = text(
    "DELETE FROM workspace_app_stats WHERE session_id IN "
    "(SELECT session_id FROM workspace_app_stats WHERE session_ended_at < :before LIMIT :batch)"
).bindparams(_BEFORE)
_KEYS = text(
    """DELETE FROM api_keys WHERE id IN (
        SELECT k.id FROM api_keys k WHERE k.expires_at < :before AND NOT EXISTS (
            SELECT 1 FROM oauth2_provider_app_tokens t WHERE t.api_key_id = k.id AND t.expires_at >= :before)
        LIMIT :batch)"""
).bindparams(_BEFORE)
"An application's refresh token goes with its access token, and lives longer: while it is good, both stay."
_CODES, _USED_TOKENS = (
    text(
        f"DELETE FROM {table} WHERE prefix IN "  # noqa: S608 - a constant below, nothing of a caller
        f"(SELECT prefix FROM {table} WHERE expires_at < :before LIMIT :batch)"
    ).bindparams(_BEFORE)
    for table in ("oauth2_provider_app_codes", "oauth2_provider_app_used_refresh_tokens")
)
_AUDIT = text(
    "DELETE FROM audit_logs WHERE id IN (SELECT id FROM audit_logs WHERE time < :before LIMIT :batch)"
).bindparams(_BEFORE)
_CONNECTIONS = text(
    "DELETE FROM connection_logs WHERE id IN (SELECT id FROM connection_logs WHERE connect_time < :before LIMIT :batch)"
).bindparams(_BEFORE)
_MESSAGES = text(
    "DELETE FROM notification_messages WHERE id IN (SELECT id FROM notification_messages "
    "WHERE status <> 'pending' AND updated_at < :before LIMIT :batch)"
).bindparams(_BEFORE)
_NODE_KEYS = text(
    "DELETE FROM node_keys WHERE key IN (SELECT key FROM node_keys WHERE seen_at < :before LIMIT :batch)"
).bindparams(_BEFORE)
_LARGE_NODES = text(
    "DELETE FROM large_nodes WHERE peer_id IN (SELECT peer_id FROM large_nodes WHERE told_at < :before LIMIT :batch)"
).bindparams(_BEFORE)
_PORT_SHARES = text(
    "DELETE FROM workspace_port_shares WHERE (workspace_id, agent_name, port) IN "
    "(SELECT workspace_id, agent_name, port FROM workspace_port_shares WHERE expires_at < :before LIMIT :batch)"
).bindparams(_BEFORE)
_LOCK = text("SELECT pg_try_advisory_xact_lock(7306)")

STATEMENTS = {
    "workspace_agent_logs": _AGENT_LOGS,
    "workspace_agent_stats": _STATS,
    "workspace_app_stats": _APP_STATS,
    "expired_api_keys": _KEYS,
    "oauth2_codes": _CODES,
    "used_oauth2_refresh_tokens": _USED_TOKENS,
    "audit_logs": _AUDIT,
    "connection_logs": _CONNECTIONS,
    "notification_messages": _MESSAGES,
    "node_keys": _NODE_KEYS,
    "large_nodes": _LARGE_NODES,
    "expired_port_shares": _PORT_SHARES,
}
"""By record type, as metrics name them."""


async def purge(tx: Tx, before: dict[str, datetime]) -> dict[str, int] | None:
    """Forgets a batch of each kind named. None when another replica is at it."""
    if not (await tx.execute(_LOCK)).scalar_one():
        return None
    gone: dict[str, int] = {}
    for kind, moment in before.items():
        result = await tx.execute(STATEMENTS[kind], {"before": moment, "batch": BATCH})
        gone[kind] = result.rowcount
    return gone
