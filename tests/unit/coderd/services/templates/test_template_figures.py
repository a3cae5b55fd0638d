"""Build times and users of templates are counted at intervals, users more often."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import update

from coder.base.clock import FakeClock
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tables.workspaces import workspaces
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import connected_daemon, new_template
from tests.kit.server.server_in_process import running_coderd


async def test_stale_figures_are_renewed() -> None:
    clock = FakeClock(datetime.now(UTC))
    often: dict[str, Any] = {"metrics_cache_refresh_interval": timedelta(minutes=4)}
    async with running_coderd(first_user=True, clock=clock, **often) as world, connected_daemon(world) as daemon:
        template = await new_template(world)
        await daemon.complete_import(await daemon.acquire())

        async def current() -> Any:
            return (await world.get(f"/api/v2/templates/{template['id']}")).json()

        async def make(name: str) -> str:
            body = {"template_id": template["id"], "name": name}
            answer = await world.post("/api/v2/users/me/workspaces", body)
            assert answer.status_code == 201
            job = await daemon.acquire()
            clock.advance(2.5)
            await daemon.complete_build(job)
            return str(answer.json()["id"])

        async def renewed(owners: int) -> bool:
            return bool((await current())["active_user_count"] == owners)  # in the background

        async def timed() -> bool:
            return bool((await current())["build_time_stats"]["start"] != unknown)

        unknown = {"P50": None, "P95": None}
        ids = [await make(name) for name in ("one", "two")]
        figures = await current()
        assert (figures["build_time_stats"]["start"], figures["active_user_count"]) == (unknown, 0)
        clock.advance(30)  # owners are counted again sooner than builds
        figures = await current()
        assert (figures["build_time_stats"]["start"], figures["active_user_count"]) == (unknown, 1)
        clock.advance(4 * 60)
        await eventually(timed)
        stats = (await current())["build_time_stats"]
        assert (stats["start"], stats["stop"]) == ({"P50": 2500, "P95": 2500}, unknown)

        # Another owner counts as well; prebuilt and deleted workspaces do not.
        async def change(tx: Any, what: str, value: Any, workspace: str) -> None:
            await tx.execute(update(workspaces).where(workspaces.c.id == UUID(workspace)).values({what: value}))

        other, _ = await world.member()
        for workspace, owner in zip(ids, (UUID(other), PREBUILDS_USER_ID), strict=True):
            await world.ctx.db.run(change, "owner_id", owner, workspace)
        third = await make("three")
        clock.advance(4 * 60)
        await eventually(lambda: renewed(2))
        await world.ctx.db.run(change, "deleted", True, third)
        clock.advance(4 * 60)
        await eventually(lambda: renewed(1))
