"""Forgetting what is too old: logs of past agents, statistics, expired keys and shares, sent messages, limited logs.

Retentions are settings where people decide (`--…-retention`, 0 keeps), otherwise upstream's figures. Provisioner
daemons are forgotten with jobs that hang (`services/provisioning/reaping.py`). One replica purges at a time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from coder.coderd.services.telemetry.metrics import Metrics
from coder.coderd.store.site import purge as store
from coder.coderd.store.site.purge import BATCH

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


KEEP_STATS = timedelta(days=180)


KEEP_MESSAGES = timedelta(days=7)
KEEP_OVER = timedelta(days=1)
"""Ours, of what is remembered only as long as it could be used again: a day, for clocks that differ."""
KEEP_NODE_KEYS = timedelta(days=180)
"""Ours: a program connected for longer that then loses its key to somebody quicker has to be started anew."""
KEEP_LARGE_NODES = timedelta(days=1)
"""Ours: a node is read in the moment it is told, and told anew by whoever comes later."""


async def purge_due(ctx: Context) -> dict[str, int]:
    """Purges until nothing is left; returns how many rows of each kind went."""
    metrics = ctx.part(Metrics)
    started = ctx.clock.monotonic()
    before = limits(ctx, ctx.clock.now())
    total = dict.fromkeys(before, 0)
    while before:
        gone = await ctx.db.run(store.purge, before)
        if gone is None:
            break
        for kind, count in gone.items():
            total[kind] += count
            metrics["coderd_dbpurge_records_purged_total"].add(kind, by=count)
        before = {kind: before[kind] for kind, count in gone.items() if count == BATCH}
    metrics["coderd_dbpurge_iteration_duration_seconds"].observe(ctx.clock.monotonic() - started, "true")
    return total


def limits(ctx: Context, now: datetime) -> dict[str, datetime]:
    """What is older than this goes; kinds that are kept for ever are left out."""
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
    }
    return {kind: now - age for kind, age in keep.items() if age}
