"""Counters of an agent: families of the recorded list, and the events that change them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
import trio

from coder.agent.counters import FAMILIES, AgentCounters
from coder.agent.network.diagnostics import metrics_text
from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.reports.stats import Statistics
from coder.agent.state import AgentState, Identity
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.scripts import ScriptRunner, Stage
from coder.rpc.proto import agent_pb2
from tests.kit.server.server_process import ROOT

RECORDED = ROOT / "tests" / "data" / "api" / "recorded" / "metrics.tsv"
PLACE = {"agent_name", "template_name", "username", "workspace_name"}


def make_state(folder: Path) -> AgentState:
    return AgentState(Identity("me", folder, "/bin/sh"), "token", "http://localhost", "coder")


def status(*paths: str, home: int = 1, connected: tuple[bool, ...] = (True,)) -> Any:
    peers = [
        SimpleNamespace(path=path, last_handshake=90.0, rx_bytes=1, tx_bytes=1, direct_bytes=1, relayed_bytes=0)
        for path in paths
    ]
    relays = [SimpleNamespace(connected=one) for one in connected]
    return SimpleNamespace(self_info=SimpleNamespace(preferred_derp=home), peers=peers, relays=relays)


def values(counters: AgentCounters) -> dict[str, float]:
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sample.labels): sample.value
        for sample in counters.samples()
    }


def test_families_match_recording() -> None:
    recorded = {line.split("\t")[0]: line.split("\t")[1] for line in RECORDED.read_text().splitlines()[1:]}
    assert {name: recorded.get(name) for name in FAMILIES} == dict(FAMILIES)
    with pytest.raises(KeyError):
        AgentCounters().count("agent_moon_phases_total")


def test_labels_match_recording() -> None:
    counters = AgentCounters()
    counters.count("agent_sessions_total", magic_type="ssh", pty="yes")
    counters.count("agent_scripts_executed_total", success="true")
    counters.set("coderd_agentstats_startup_script_seconds", 1.5, success="true")
    counters.note_network(status("direct"), 100)
    recorded = {line.split("\t")[0]: line.split("\t")[2] for line in RECORDED.read_text().splitlines()[1:]}
    for sample in counters.samples():
        assert {name for name, _ in sample.labels} == set(recorded[sample.name].split(",")) - PLACE, sample.name


def test_network_gauges() -> None:
    counters = AgentCounters()
    counters.note_network(status("direct", "relayed", "relayed", connected=(True, False)), 100)
    counters.note_network(status("direct", "relayed", "relayed", connected=(True, False)), 100)
    counters.note_network(status("direct", home=0), 100)
    found = values(counters)
    assert found["derp_home_change"] == 1
    assert found["coderd_agentstats_currently_reachable_peers connection_type=p2p"] == 1
    assert found["magicsock_netmap_num_peers"] == 1
    counters.note_network(status("direct", "relayed", home=2), 1000)
    found = values(counters)
    assert found["derp_home_change"] == 2
    assert found["magicsock_netmap_num_peers"] == 2 and found["magicsock_num_derp_conns"] == 1
    assert found["coderd_agentstats_currently_reachable_peers connection_type=derp"] == 0, "its handshake is too old"


async def test_scripts_and_terminals_count(tmp_path: Path) -> None:
    state = make_state(tmp_path)
    runner = ScriptRunner(state, LogQueue(lambda: datetime.now(UTC)), _unheard, tmp_path, tmp_path)
    state.overlay = lambda: status("direct")
    for script in ("true", "exit 3"):
        await runner.run(agent_pb2.WorkspaceAgentScript(log_source_id=uuid4().bytes, script=script), Stage.START)
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        service = PtyService(state, nursery)
        nursery.start_soon(service.serve, far)
        init = b'{"ID":"t","Height":24,"Width":80,"Command":"true"}'
        await near.send_all(len(init).to_bytes(2, "little") + init)
        while await near.receive_some():
            pass
        nursery.cancel_scope.cancel()
    found = values(state.counters)
    assert (
        found["agent_scripts_executed_total success=true"] == found["agent_scripts_executed_total success=false"] == 1
    )
    assert found["agent_reconnecting_pty_connections_total"] == 1
    text = metrics_text(state)
    assert '# TYPE agent_scripts_executed_total counter\nagent_scripts_executed_total{success="false"} 1\n' in text
    assert "\nmagicsock_netmap_num_peers 1\n" in text
    sent = {one.name: one for one in Statistics(state, cast("Any", None))._metrics()}
    assert set(sent) == {name.split(" ")[0] for name in found} | {
        "coderd_agentstats_currently_reachable_peers",
        "derp_home_change",
        "magicsock_netmap_num_peers",
        "magicsock_num_derp_conns",
    }
    assert sent["magicsock_netmap_num_peers"].type == agent_pb2.Stats.Metric.GAUGE
    assert sent["agent_scripts_executed_total"].labels[0].name == "success"


async def _unheard(_timing: agent_pb2.Timing) -> None:
    await trio.lowlevel.checkpoint()
