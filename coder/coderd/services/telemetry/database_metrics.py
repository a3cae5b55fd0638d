"""Metrics of database work for `--prometheus-collect-db-metrics`, under upstream's names.

A query here is a unit of work (one transaction or read) named by its function in the store; its latency includes the
wait for a connection of the pool, as callers experience it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

CURRENT_REQUEST: ContextVar[Mapping[str, object]] = ContextVar("CURRENT_REQUEST", default=MappingProxyType({}))
"""ASGI scope of the request that this task answers, with its `coder_route` once it is known; empty for other work."""
_ROUTE_ARGUMENT = re.compile(r"<(?:[^<>:]*:)?([^<>]*)>")


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Observe the database until the server stops; do nothing when disabled."""
    if not ctx.config.prometheus_collect_db_metrics:
        task_status.started()
        return
    metrics = ctx.services.metrics
    latencies, counts = metrics["coderd_db_query_latencies_seconds"], metrics["coderd_db_query_counts_total"]

    @contextlib.contextmanager
    def observe(function: str) -> Iterator[None]:
        query, began = function.strip("_"), ctx.clock.monotonic()
        request = CURRENT_REQUEST.get()
        route = _ROUTE_ARGUMENT.sub(r"{\1}", str(request.get("coder_route") or ""))
        method = str(request.get("method", "")) if route else ""
        try:
            yield
        finally:
            latencies.observe(ctx.clock.monotonic() - began, query)
            counts.add(method, query, route)

    ctx.db.observers.append(observe)
    task_status.started()
    try:
        await trio.sleep_forever()
    finally:
        ctx.db.observers.remove(observe)
