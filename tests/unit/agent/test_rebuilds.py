"""A machine keeps its identity after a rebuild: the same process is reached under the new agent's id."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from coder.agent.reports import vitals
from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import check_links_often, eventually, workspace_world


async def test_process_becomes_new_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "VITALS_INTERVAL", 0.1)
    check_links_often(monkeypatch)
    async with workspace_world() as scene, running_agent(scene, DialPolicy(scene.world.url), tmp_path):
        old = scene.agent_id

        async def reached() -> bool:
            answer = await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/listening-ports")
            return answer.status_code == 200

        await eventually(reached)
        path = f"/api/v2/workspaces/{scene.workspace['id']}"
        assert (await scene.world.post(f"{path}/builds", {"transition": "start"})).status_code == 201

        async def rebuilt() -> str:
            found = (await scene.world.get(path)).json()["latest_build"]
            agents = [agent for one in found["resources"] for agent in one.get("agents") or []]
            done = found["build_number"] == 2 and found["status"] == "running" and agents
            return str(agents[0]["id"]) if done else ""

        scene.agent_id = UUID(await eventually(rebuilt))
        assert scene.agent_id != old

        async def ready() -> bool:
            found = await scene.agent()
            return bool(found["status"] == "connected" and found["lifecycle_state"] == "ready")

        await eventually(ready)

        async def reported() -> bool:
            indicators = (await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/lights")).json()
            return bool(indicators["host"]["values"][0]["at"])

        await eventually(reported)
        found = (await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/disconnects")).json()
        assert found == [], "a newer build is no disconnect"
        await eventually(reached)
