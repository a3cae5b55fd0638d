"""Builds that were asked for are counted once, by who asked and how it went."""

from __future__ import annotations

import re

from coder.coderd.services.telemetry.metrics import Metrics
from coder.coderd.services.workspaces.builds.build_metrics import FAMILY
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import (
    TASKS,
    build,
    new_task,
    new_workspace,
    prebuilt,
    settled,
    task_world,
    workspace_world,
    world_with_preset,
)


async def counted(world: World) -> dict[tuple[str, ...], int]:
    """(reason, provisioner, status, transition) -> how many."""
    text = await world.ctx.part(Metrics).exposition()
    found = re.findall(
        FAMILY + r'\{build_reason="(.*?)",provisioner_type="(.*?)",status="(.*?)",transition="(.*?)"\} (\d+)', text
    )
    return {tuple(row[:4]): int(row[4]) for row in found}


async def test_people_and_refusals() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        await build(world, workspace["id"], "stop")
        refused = await world.post(
            f"/api/v2/workspaces/{workspace['id']}/builds",
            {"transition": "start", "rich_parameter_values": [{"name": "cpu", "value": "99"}]},
        )
        assert refused.status_code == 400
        assert await counted(world) == {
            ("initiator", "echo", "success", "start"): 1,
            ("initiator", "echo", "success", "stop"): 1,
            ("initiator", "", "failed", "start"): 1,
        }
        abandoned = await world.post(f"/api/v2/workspaces/{workspace['id']}/abandon")
        assert abandoned.status_code == 200 and await world.left_an_entry(abandoned)
        assert (await counted(world))["initiator", "echo", "success", "delete"] == 1


async def test_tasks() -> None:
    async with task_world() as (world, _):
        task = await new_task(world)
        paused = await world.post(f"{TASKS}/me/{task['id']}/pause")
        assert paused.status_code == 202, paused.text
        await settled(world, task["workspace_id"])
        assert (await world.delete(f"{TASKS}/me/{task['id']}")).status_code == 202
        assert await counted(world) == {
            ("initiator", "echo", "success", "start"): 1,
            ("task_manual_pause", "echo", "success", "stop"): 1,
            ("initiator", "echo", "success", "delete"): 1,
        }


async def test_workspaces_made_ahead() -> None:
    async with world_with_preset() as (world, _, _preset):
        await reconcile(world.ctx)
        await eventually(lambda: prebuilt(world))
        assert await counted(world) == {("initiator", "echo", "success", "start"): 1}
