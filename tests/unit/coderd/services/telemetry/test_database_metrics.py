"""Metrics of database work, counted by query and route."""

from __future__ import annotations

import re

from tests.kit.server.server_in_process import World, running_coderd

_COUNT = re.compile(r'coderd_db_query_counts_total\{method="(.*)",query="(.+)",route="(.*)"\} (\d+)')


async def counts(world: World) -> dict[tuple[str, str, str], int]:
    text = await world.ctx.services.metrics.exposition()
    return {(match[1], match[2], match[3]): int(match[4]) for match in _COUNT.finditer(text)}


async def test_queries_are_timed_by_name() -> None:
    async with running_coderd(first_user=True, prometheus_collect_db_metrics=True) as world:
        assert (await world.get("/api/v2/users/me/quiet-hours")).status_code == 200
        assert (await world.get("/api/v2/organizations/default/templates")).status_code == 200
        routes = {(method, route) for method, _, route in await counts(world)}
        assert {("GET", "/api/v2/organizations/{organization}/templates"), ("", "")} <= routes
        text = await world.ctx.services.metrics.exposition()
        buckets = re.findall(r'coderd_db_query_latencies_seconds_bucket\{query="(\w+)",le="\+Inf"\} (\d+)', text)
        assert buckets and all(int(count) > 0 for _, count in buckets)


async def test_off_by_default() -> None:
    async with running_coderd(first_user=True) as world:
        assert "coderd_db_query" not in await world.ctx.services.metrics.exposition()
        assert world.ctx.db.observers == []
