"""Simulated agents against a real server: connections, reports, return after a loss, figures, options."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest
import trio

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.cli.core.parsing import parse
from coder.cli.declarations.scaletest.agents import AGENTS
from coder.cli.scaletest import agents, simulated_agent
from coder.cli.scaletest.agents import _read_tokens, _write_figures, check_files
from coder.cli.scaletest.simulated_agent import FleetFigures, SimulatedAgent
from coder.net.policy import DialPolicy
from tests.kit.agents.scripted_agent import AgentWorld, check_links_often, eventually, workspace_world


async def _connected(figures: FleetFigures) -> bool:
    return figures.connected == 1


async def _status(scene: AgentWorld) -> str:
    return str((await scene.agent())["status"])


async def test_simulated_agent_connects_and_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VITALS_INTERVAL", "BANNER_INTERVAL"):
        monkeypatch.setattr(simulated_agent, name, 0.05)
    async with workspace_world() as scene, trio.open_nursery() as nursery:
        figures = FleetFigures()
        agent = SimulatedAgent(DialPolicy(scene.world.url, token=Secret(scene.token)), figures, logs=True)
        nursery.start_soon(agent.run)
        await eventually(lambda: _connected(figures))
        assert await _status(scene) == "connected" and (await scene.agent())["lifecycle_state"] == "ready"

        async def disk() -> bool:
            lights = (await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/lights")).json()
            return any(value["name"] == "disk" for value in lights["host"]["values"])

        async def reported() -> bool:
            return figures.calls > 0

        await eventually(reported)  # the light is there before the first report
        await eventually(disk)
        relay = scene.world.ctx.services.relay.derp.server
        assert relay is not None and relay.is_connected(agent._key.public), "the agent has a link to the relay"
        assert figures.calls and not figures.failed_calls and not figures.errors
        nursery.cancel_scope.cancel()


async def test_lost_simulated_agent_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    check_links_often(monkeypatch)
    async with workspace_world() as scene, trio.open_nursery() as nursery:
        figures = FleetFigures()
        policy = DialPolicy(scene.world.url, token=Secret(scene.token))
        nursery.start_soon(SimulatedAgent(policy, figures, uses_relay=False).run)
        await eventually(lambda: _connected(figures))
        build = {"transition": "start"}
        path = f"/api/v2/workspaces/{scene.workspace['id']}/builds"
        assert (await scene.world.post(path, build)).status_code == 201

        async def returned() -> bool:
            return figures.attempts > 1

        assert scene.world.ctx.services.api.agent_connections.is_connected(scene.agent_id)
        await eventually(returned)
        assert figures.peak == 1
        nursery.cancel_scope.cancel()


async def test_refused_simulated_agent_is_counted() -> None:
    async with workspace_world() as scene, trio.open_nursery() as nursery:
        figures = FleetFigures()
        nursery.start_soon(SimulatedAgent(DialPolicy(scene.world.url, token=Secret(str(uuid4()))), figures).run)

        async def refused_twice() -> bool:
            return figures.attempts >= 3

        await eventually(refused_twice)
        assert figures.connected == figures.peak == 0
        assert any("not authorized" in text for text in figures.errors), figures.errors
        nursery.cancel_scope.cancel()


def test_token_file(tmp_path: Path) -> None:
    tokens, file = [str(uuid4()), str(uuid4())], tmp_path / "tokens"
    file.write_text("\n\n".join(tokens) + "\n")
    assert _read_tokens(str(file)) == tokens
    file.write_text(f"{tokens[0]}\nsecret\n")
    with pytest.raises(CoderError, match="line 2") as caught:
        _read_tokens(str(file))
    assert "secret" not in str(caught.value), "a token is never shown"
    with pytest.raises(CoderError, match="cannot be read"):
        _read_tokens(str(tmp_path / "absent"))


@pytest.mark.parametrize(("connected", "failed", "status"), [(2, 0, 0), (1, 0, 1), (2, 1, 1)])
def test_exit_status(connected: int, failed: int, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    figures = FleetFigures(connected=connected, failed_calls=failed, connect_seconds=[0.1, 0.2])
    invocation = parse(AGENTS, ["--output", "json"], {})
    assert _write_figures(invocation, figures, 2) == status
    assert json.loads(capsys.readouterr().out)["connect"]["p50_ms"] == 100


def test_agents_without_files_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand agents in a process with 20,000 files: eight of them never connected."""
    monkeypatch.setattr(agents, "raise_open_files", lambda: None)
    monkeypatch.setattr(agents, "open_files_limit", lambda: 20_000)
    with pytest.raises(CoderError, match="enough for 9968 agents and not for 10000"):
        check_files(10_000)
    check_files(9_968)
    check_files(19_936, uses_relay=False)
