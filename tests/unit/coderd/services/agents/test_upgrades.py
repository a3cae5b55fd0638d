"""Upgrades of agents on request: the agent's answers, refusals, and permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from coder.agent.network.http_api import HttpApi
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, json_reply, message_reply
from coder.agent.network.upgrade_routes import UPGRADE_ROUTES
from coder.agent.state import AgentState, Identity
from coder.api.base.refusals import BadGateway
from coder.base.json_types import JsonObject
from coder.base.version import BUILD_VERSION
from coder.coderd.services.agents.agent_http import read_upgrade_untrusted
from coder.coderd.services.network.stream_http import AgentAnswer
from tests.kit.agents.real_agent import running_overlay_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world


class Upgrades:
    """Upgrades of an agent that count requests."""

    def __init__(self) -> None:
        self.requests = 0

    def describe(self) -> JsonObject:
        return {"state": "queued", "detail": "", "version": "v1.0.0", "server_version": "v0"}

    def request(self) -> None:
        self.requests += 1


def _agent_state(upgrades: Upgrades | None) -> AgentState:
    identity = Identity("me", Path("/"), "/bin/sh")
    return AgentState(identity=identity, token="t", url="http://x", executable="coder", upgrades=upgrades)


async def _hello(_state: AgentState, _request: HttpRequest) -> HttpReply:
    return message_reply(200, "Hello from the agent!")


async def _odd(_state: AgentState, _request: HttpRequest) -> HttpReply:
    return json_reply(200, {"state": "on holiday"})


OLD: Routes = {("GET", "/"): _hello}
ODD: Routes = {("GET", "/api/v0/upgrade"): _odd, ("POST", "/api/v0/upgrade"): _odd}


async def test_upgrade_through_overlay() -> None:
    upgrades = Upgrades()
    api = HttpApi(_agent_state(upgrades), UPGRADE_ROUTES)

    async def serve(stream: Any) -> None:
        await api.serve(stream)

    async with workspace_world() as scene:
        world, path = scene.world, f"/api/v2/workspaceagents/{scene.agent_id}/upgrade"
        for method in ("GET", "POST"):
            offline = await world.request(method, path)
            assert offline.status_code == 400 and "must be in the" in offline.json()["message"]
        async with running_overlay_agent(scene, services={4: serve}):
            await eventually(lambda: _is_connected(scene))
            with trio.fail_after(60):
                read = await world.get(path)
                assert read.status_code == 200, read.text
                assert read.json() == {
                    "state": "queued",
                    "detail": "",
                    "version": "v1.0.0",
                    "server_version": BUILD_VERSION,
                }
                assert upgrades.requests == 0
                assert (await world.post(path)).status_code == 202
                assert upgrades.requests == 1

                _, stranger = await world.member("bob")
                bob_calls = [
                    (await world.request(method, path, token=stranger)).status_code for method in ("GET", "POST")
                ]
                assert bob_calls == [404, 404] and upgrades.requests == 1

                api = HttpApi(_agent_state(None), UPGRADE_ROUTES)
                assert (await world.get(path)).json()["state"] == "disabled"
                refused = await world.post(path)
                assert refused.status_code == 409 and "--self-upgrade" in refused.json()["message"]

                api = HttpApi(_agent_state(None), OLD)
                assert (await world.get(path)).json()["state"] == "unsupported"
                refused = await world.post(path)
                assert refused.status_code == 409 and "too old" in refused.json()["message"]

                api = HttpApi(_agent_state(None), ODD)
                assert [(await world.request(method, path)).status_code for method in ("GET", "POST")] == [502, 502]


async def _is_connected(scene: AgentWorld) -> bool:
    return bool((await scene.agent())["status"] == "connected")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"[" * 100_000, b'{"state":"queued"}', b'{"state":1}'])
def test_invalid_answer_of_agent(body: bytes) -> None:
    with pytest.raises(BadGateway):
        read_upgrade_untrusted(AgentAnswer(200, body))
