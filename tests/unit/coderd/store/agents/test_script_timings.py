"""Timings of scripts, of which a cron script has one for each run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select

from coder.base.clock import FakeClock
from coder.base.ids import new_uuid
from coder.coderd.store.agents.agent_scripts import insert_script_timing, list_script_timings
from coder.coderd.store.tables.agents import workspace_agent_scripts, workspace_agents
from tests.kit.agents.scripted_agent import workspace_world

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCRIPT = {
    "created_at": NOW,
    "log_path": "",
    "script": "true",
    "run_on_stop": False,
    "start_blocks_login": False,
    "timeout_seconds": 0,
}


async def test_first_run_of_each_script_is_listed() -> None:
    async with workspace_world(clock=FakeClock(NOW)) as machine:
        database = machine.world.ctx.db

        async def add(tx: Any) -> UUID:
            agent = (await tx.execute(select(workspace_agents).where(workspace_agents.c.id == machine.agent_id))).one()
            for position, cron in enumerate(("*/10 * * * * *", "")):
                own = {"id": new_uuid(), "agent_id": agent.id, "log_source_id": new_uuid(), "cron": cron}
                shown = {"display_name": cron or "start", "position": position, "run_on_start": not cron}
                await tx.execute(workspace_agent_scripts.insert().values(**SCRIPT, **own, **shown))
                for minute in (3, 1, 2) if cron else (5,):
                    at = NOW + timedelta(minutes=minute)
                    ends: dict[str, Any] = {"exit_code": 0, "stage": "cron" if cron else "start", "status": "ok"}
                    await insert_script_timing(tx, own["id"], started_at=at, ended_at=at, **ends)
            return UUID(str(agent.job_id))

        timings = await database.read(list_script_timings, await database.run(add))
        assert sorted((row.started_at, row.display_name) for row in timings) == [
            (NOW + timedelta(minutes=1), "*/10 * * * * *"),
            (NOW + timedelta(minutes=5), "start"),
        ]
