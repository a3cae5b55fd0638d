"""Output of `coder ping` about the transports of its link."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from coder.base.secret import Secret
from coder.cli.core.parsing import parse
from coder.cli.declarations.network.ping import PING
from coder.cli.network.ping import _main
from coder.client.link import explain_link, open_link
from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import workspace_world


async def test_explains_each_transport(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with workspace_world() as view_context:
        policy = DialPolicy(view_context.world.url, token=Secret(view_context.world.token))
        with trio.fail_after(60):
            async with running_agent(view_context, policy, tmp_path / "agent"):
                async with open_link(policy, view_context.agent_id, direct=False) as link:
                    await link.wait_reachable()
                    result = {transport.name: transport for transport in explain_link(link, await link.ping())}
                assert {name: transport.state for name, transport in result.items()} == {
                    "api": "ok",
                    "links": "ok",
                    "relay-upgrade": "ok",
                    "relay-websocket": "skipped",
                    "relay-stream": "skipped",
                    "direct": "skipped",
                }
                assert "--disable-direct-connections" in result["direct"].text
                env = {"CODER_URL": view_context.world.url, "CODER_SESSION_TOKEN": view_context.world.token}
                assert await _main(parse(PING, ["dev", "-n", "1", "-o", "json"], env)) == 0
                report = json.loads(capsys.readouterr().out)
                assert report["workspace"] == "dev"
                assert len(report["pings"]) == 1
                assert report["rungs"][0]["message"].startswith(view_context.world.url)
                assert (report["lost"], report["latency_ms"]["min"]) == (0, report["pings"][0]["latency_ms"])
                path = report["path"]
                assert (path["relay_region_id"], path["relay_rung"], path["coordination"]) == (
                    999,
                    "upgrade",
                    "websocket",
                )
                assert 0 <= path["last_handshake_seconds_ago"] < 30
                assert path["relay_latency_ms"] > 0
                assert (path["not_direct_because"] is None) == report["pings"][0]["p2p"]
                argv = ["dev", "-n", "1", "--disable-direct-connections"]
                assert await _main(parse(PING, argv, env)) == 0
                output = capsys.readouterr().out
                assert "pong from dev proxied via DERP(Coder Embedded Relay) in " in output
                assert "✔ Links " in output
                assert "home relay: Coder Embedded Relay, " in output
                assert "not direct: switched off here by --disable-direct-connections" in output
