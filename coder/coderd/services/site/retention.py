"""Delete old rows: logs of past agents, statistics, expired keys and shares, sent messages, logs with a retention.

Retentions are settings where administrators decide (`--…-retention`, 0 keeps all), otherwise upstream's values.
Provisioner daemons are deleted with hung jobs (`services/provisioning/reaping.py`). One replica purges at a time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from coder.coderd.store.site import purge as store
from coder.coderd.store.site.purge import BATCH

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


KEEP_STATS = timedelta(days=180)


KEEP_MESSAGES = timedelta(days=7)
KEEP_OVER = timedelta(days=1)
"""Additional time, ours, for rows that are kept only as long as they could be used: a day, for clocks that differ."""
KEEP_NODE_KEYS = timedelta(days=180)
"""Ours: a program that has been connected for longer, and then loses its key to a faster one, must be restarted."""
KEEP_LARGE_NODES = timedelta(days=1)
"""Ours: a node is read when its notice arrives, and published again by a client that connects later."""


async def purge_due(ctx: Context) -> dict[str, int]:
    """Purge until nothing is left. Return the number of deleted rows by kind."""
    metrics = ctx.services.metrics
    started = ctx.clock.monotonic()
    before = limits(ctx, ctx.clock.now())
    total = dict.fromkeys(before, 0)
    while before:
        deleted = await ctx.db.run(store.purge, before)
        if deleted is None:
            break
        for kind, count in deleted.items():
            total[kind] += count
            metrics["coderd_dbpurge_records_purged_total"].add(kind, by=count)
        before = {kind: before[kind] for kind, count in deleted.items() if count == BATCH}
    metrics["coderd_dbpurge_iteration_duration_seconds"].observe(ctx.clock.monotonic() - started, "true")
    return total


def limits(ctx: Context, now: datetime) -> dict[str, datetime]:
    """Return the age limits by kind, without kinds that are kept for ever."""
    config = ctx.config
    keep = {
        "workspace_agent_logs": config.workspace_agent_logs_retention,
        "workspace_agent_stats": KEEP_STATS,
        "workspace_app_stats": KEEP_STATS,
        "expired_api_keys": config.api_keys_retention,
        "oauth2_codes": KEEP_OVER,
        "used_oauth2_refresh_tokens": KEEP_OVER,
        "audit_logs": config.audit_logs_retention,
        "connection_logs": config.connection_logs_retention,
        "notification_messages": KEEP_MESSAGES,
        "node_keys": KEEP_NODE_KEYS,
        "large_nodes": KEEP_LARGE_NODES,
        "expired_port_shares": KEEP_OVER,
        "update_previews": KEEP_OVER,
    }
    return {kind: now - age for kind, age in keep.items() if age}
