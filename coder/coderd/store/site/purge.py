"""Deletion of old rows. Each query takes a time and returns the number of deleted rows.

Rows are deleted in batches: the first purge of an old database must not hold its tables for minutes.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import TextClause, bindparam, text

from coder.coderd.store.engine.metadata import Timestamp
from coder.domain.provisioning.queue import PREVIEW_PRIORITY

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

BATCH = 10_000
_BEFORE = bindparam("before", type_=Timestamp)

# Lines never change, so the condition need not be rechecked.
_AGENT_LOGS = text(
    """DELETE FROM workspace_agent_logs WHERE id IN (
        SELECT l.id FROM workspace_agent_logs l JOIN workspace_agents a ON a.id = l.agent_id
        WHERE coalesce(a.last_connected_at, a.created_at) < :before AND NOT EXISTS (
            SELECT 1 FROM workspaces w JOIN workspace_builds b ON b.id = w.latest_build_id
            WHERE b.job_id = a.job_id AND NOT w.deleted)
        LIMIT :batch)"""
).bindparams(_BEFORE)


def _batch(table: str, key: str, is_over: str) -> TextClause:
    """Delete a batch of expired rows.

    The condition occurs twice. A row renewed while the batch waits for its lock is rechecked by the outer condition
    alone: the list of keys was selected before.
    """
    return text(
        f"DELETE FROM {table} WHERE {key} IN (SELECT {key.strip('()')} FROM {table} WHERE {is_over} LIMIT :batch) "  # noqa: S608 - constants below, nothing of a caller
        f"AND {is_over}"
    ).bindparams(_BEFORE)


_KEY_IS_OVER = """expires_at < :before AND NOT EXISTS (
    SELECT 1 FROM oauth2_provider_app_tokens t WHERE t.api_key_id = api_keys.id AND t.expires_at >= :before)"""
"""An application's refresh token is deleted with its access token, and lives longer: while it is valid, both stay."""
_LOCK = text("SELECT pg_try_advisory_xact_lock(7306)")

STATEMENTS = {
    "workspace_agent_logs": _AGENT_LOGS,
    "workspace_agent_stats": _batch("workspace_agent_stats", "id", "created_at < :before"),
    "workspace_app_stats": _batch("workspace_app_stats", "session_id", "session_ended_at < :before"),
    "expired_api_keys": _batch("api_keys", "id", _KEY_IS_OVER),
    "oauth2_codes": _batch("oauth2_provider_app_codes", "prefix", "expires_at < :before"),
    "used_oauth2_refresh_tokens": _batch("oauth2_provider_app_used_refresh_tokens", "prefix", "expires_at < :before"),
    "audit_logs": _batch("audit_logs", "id", "time < :before"),
    "connection_logs": _batch("connection_logs", "id", "connect_time < :before"),
    "notification_messages": _batch("notification_messages", "id", "status <> 'pending' AND updated_at < :before"),
    "node_keys": _batch("node_keys", "key", "seen_at < :before"),
    "large_nodes": _batch("large_nodes", "peer_id", "told_at < :before"),
    "expired_port_shares": _batch("workspace_port_shares", "(workspace_id, agent_name, port)", "expires_at < :before"),
    "update_previews": _batch("provisioner_jobs", "id", f"priority = {PREVIEW_PRIORITY} AND completed_at < :before"),
}
"""Statements by record type, as metrics name them."""


async def purge(tx: Tx, before: dict[str, datetime]) -> dict[str, int] | None:
    """Delete a batch of each named kind. None when another replica is purging."""
    if not (await tx.execute(_LOCK)).scalar_one():
        return None
    deleted: dict[str, int] = {}
    for kind, moment in before.items():
        result = await tx.execute(STATEMENTS[kind], {"before": moment, "batch": BATCH})
        deleted[kind] = result.rowcount
    return deleted
