"""Requested builds are build_counts once, by reason and result."""

from __future__ import annotations

import re

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


async def build_counts(world: World) -> dict[tuple[str, ...], int]:
    """Return counts by (reason, provisioner, status, transition)."""
    text = await world.ctx.services.metrics.exposition()
    matches = re.findall(
        FAMILY + r'\{build_reason="(.*?)",provisioner_type="(.*?)",status="(.*?)",transition="(.*?)"\} (\d+)', text
    )
    return {tuple(row[:4]): int(row[4]) for row in matches}


async def test_user_builds_and_refusals_counted() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        await build(world, workspace["id"], "stop")
        refused = await world.post(
            f"/api/v2/workspaces/{workspace['id']}/builds",
            {"transition": "start", "rich_parameter_values": [{"name": "cpu", "value": "99"}]},
        )
        assert refused.status_code == 400
        assert await build_counts(world) == {
            ("initiator", "echo", "success", "start"): 1,
            ("initiator", "echo", "success", "stop"): 1,
            ("initiator", "", "failed", "start"): 1,
        }
        abandoned = await world.post(f"/api/v2/workspaces/{workspace['id']}/abandon")
        assert abandoned.status_code == 200 and await world.left_an_entry(abandoned)
        assert (await build_counts(world))["initiator", "echo", "success", "delete"] == 1


async def test_task_builds_counted() -> None:
    async with task_world() as (world, _):
        task = await new_task(world)
        paused = await world.post(f"{TASKS}/me/{task['id']}/pause")
        assert paused.status_code == 202, paused.text
        await settled(world, task["workspace_id"])
        assert (await world.delete(f"{TASKS}/me/{task['id']}")).status_code == 202
        assert await build_counts(world) == {
            ("initiator", "echo", "success", "start"): 1,
            ("task_manual_pause", "echo", "success", "stop"): 1,
            ("initiator", "echo", "success", "delete"): 1,
        }


async def test_prebuilds_counted() -> None:
    async with world_with_preset() as (world, _, _preset):
        await reconcile(world.ctx)
        await eventually(lambda: prebuilt(world))
        assert await build_counts(world) == {("initiator", "echo", "success", "start"): 1}
