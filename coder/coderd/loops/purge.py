"""Forgets what is too old: logs of past agents, statistics, expired keys, sent messages, and logs with a limit.

Retentions are settings where people decide (`--…-retention`, 0 keeps), otherwise upstream's figures. Provisioner
daemons are forgotten by the reaper. One replica purges at a time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import trio

from coder.coderd.services.metrics import Metrics
from coder.coderd.store import purge as store
from coder.coderd.store.purge import BATCH

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

EVERY = timedelta(minutes=10)
KEEP_STATS = timedelta(days=180)
KEEP_MESSAGES = timedelta(days=7)


async def run(ctx: Context) -> None:
    """Runs until cancelled."""
    log = ctx.log.bind(loop="purge")
    while True:
        try:
            gone = await turn(ctx)
            if any(gone.values()):
                log.info("old rows were purged", **gone)
        except Exception as error:
            # The database may be away for a moment; old rows grow no younger.
            log.error("a turn failed", error=error)
        await trio.sleep(EVERY.total_seconds())


async def turn(ctx: Context) -> dict[str, int]:
    """Purges until nothing is left; returns how many rows of each kind went."""
    metrics: Metrics = ctx.part(Metrics)
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
        "audit_logs": config.audit_logs_retention,
        "connection_logs": config.connection_logs_retention,
        "notification_messages": KEEP_MESSAGES,
    }
    return {kind: now - age for kind, age in keep.items() if age}
