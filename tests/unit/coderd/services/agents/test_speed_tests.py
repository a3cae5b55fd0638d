"""Speed tests of a page: bounds, turns, and the right to open a terminal."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from coder.agent.network.speedtest import serve_speedtest
from coder.api.base.refusals import Conflict
from coder.coderd.services.agents import speed_tests
from coder.coderd.services.agents.speed_tests import MAX_PAYLOAD, MOST_TESTS, SpeedTests
from tests.kit.agents.real_agent import running_overlay_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world


async def test_speed_through_overlay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound of bytes ends each test before its three seconds."""
    monkeypatch.setattr(speed_tests, "MOST_BYTES", 256 << 10)
    async with workspace_world() as scene:
        world, path = scene.world, f"/api/v2/workspaceagents/{scene.agent_id}/speedtest"
        offline = await world.post(path, {"direction": "down"})
        assert offline.status_code == 400 and "must be in the" in offline.json()["message"]
        async with running_overlay_agent(scene, services={3: serve_speedtest}):
            await eventually(lambda: _is_connected(scene))
            with trio.fail_after(60):
                for direction in ("down", "up"):
                    answer = await world.post(path, {"direction": direction})
                    assert answer.status_code == 200, answer.text
                    result = answer.json()
                    assert (result["direction"], result["via"]) == (direction, "relay")
                    assert 256 << 10 <= result["bytes"] < 4 << 20
                    assert result["mbits"] > 0 and result["round_trip_ms"] > 0
                assert (await world.post(path, {"direction": "both"})).status_code == 400
                with world.ctx.services.api.speed_tests.turn(scene.agent_id):
                    assert (await world.post(path, {"direction": "down"})).status_code == 409
                await _check_payload_and_rights(scene, path)


async def _check_payload_and_rights(scene: AgentWorld, path: str) -> None:
    world = scene.world
    received = await world.get(f"{path}/payload", params={"bytes": 100_000})
    assert (received.status_code, len(received.content)) == (200, 100_000)
    assert received.headers["cache-control"] == "no-store"
    assert (await world.get(f"{path}/payload", params={"bytes": MAX_PAYLOAD + 1})).status_code == 400
    octets = {"Content-Type": "application/octet-stream"}
    sent = await world.request("POST", f"{path}/payload", content=b"x" * 100_000, headers=octets)
    assert sent.status_code == 204, sent.text
    bob, stranger = await world.member("bob")

    async def statuses() -> list[int]:
        return [
            (await world.post(path, {"direction": "down"}, token=stranger)).status_code,
            (await world.get(f"{path}/payload", params={"bytes": 1}, token=stranger)).status_code,
            (await world.request("POST", f"{path}/payload", content=b"x", headers=octets, token=stranger)).status_code,
        ]

    assert await statuses() == [404, 404, 404]
    acl = f"/api/v2/workspaces/{scene.workspace['id']}/acl"
    assert (await world.patch(acl, {"user_roles": {bob: "use"}})).status_code == 204
    assert await statuses() == [200, 200, 204], "the role may open a terminal"


async def _is_connected(scene: AgentWorld) -> bool:
    return bool((await scene.agent())["status"] == "connected")


def test_turns_are_few() -> None:
    tests = SpeedTests()
    agents: list[UUID] = [uuid4() for _ in range(MOST_TESTS + 1)]
    turns: list[Any] = [tests.turn(agent) for agent in agents[:MOST_TESTS]]
    for turn in turns:
        turn.__enter__()
    for agent in (agents[0], agents[-1]):
        with pytest.raises(Conflict), tests.turn(agent):
            raise AssertionError("a turn too many")
    turns[0].__exit__(None, None, None)
    with tests.turn(agents[-1]):
        pass
