"""How long builds take is counted now and then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import trio

from coder.base.clock import FakeClock
from tests.kit.coderd import running_coderd
from tests.kit.daemon import connected_daemon, new_template


async def test_old_figures_are_renewed() -> None:
    clock = FakeClock(datetime.now(UTC))
    often = {"metrics_cache_refresh_interval": timedelta(minutes=4)}
    async with running_coderd(first_user=True, clock=clock, **often) as world, connected_daemon(world) as daemon:
        template = await new_template(world)
        path = f"/api/v2/templates/{template['id']}"
        await daemon.complete_import(await daemon.acquire())
        body = {"template_id": template["id"], "name": "dev"}
        assert (await world.post("/api/v2/users/me/workspaces", body)).status_code == 201
        job = await daemon.acquire()
        clock.advance(2.5)
        await daemon.complete_build(job)
        assert (await world.get(path)).json()["build_time_stats"]["start"] == {"P50": None, "P95": None}
        clock.advance(4 * 60)
        stats = (await world.get(path)).json()["build_time_stats"]
        with trio.fail_after(60):
            while stats["start"]["P50"] is None:  # renewed behind the first caller's back
                stats = (await world.get(path)).json()["build_time_stats"]
        assert stats["start"] == {"P50": 2500, "P95": 2500}
        assert stats["stop"] == {"P50": None, "P95": None}
