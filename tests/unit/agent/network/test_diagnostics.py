"""Diagnostics of a running agent over the overlay."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coder.agent.network import diagnostics
from coder.agent.network.http_api import DEBUG_ROUTES, METRICS_ROUTES, HttpApi
from coder.agent.network.http_messages import HttpReply, HttpRequest
from coder.agent.state import AgentState
from coder.agent.workspace.environment import find_identity


@dataclass
class _Relay:
    region: int = 999
    connected: bool = True


def _status(**changes: Any) -> Any:
    info = SimpleNamespace(
        public_key="nodekey:<1>",
        addresses=("fd7a::1",),
        endpoints=(),
        preferred_derp=999,
        derp_latency={"999-v4": 0.002},
    )
    peer = SimpleNamespace(
        public_key="k",
        addresses=("fd7a::2",),
        path="direct",
        endpoint="192.0.2.1:1",
        rx_bytes=7,
        tx_bytes=5,
        direct_bytes=9,
        relayed_bytes=3,
        last_handshake=None,
    )
    values: dict[str, Any] = {
        "self_info": info,
        "udp_ports": (41641, 0),
        "udp_works": True,
        "mapping_varies": False,
        "port_mapping": "PCP",
        "relays": (_Relay(),),
        "cipher": "cryptography, packet by packet",
        "peers": (peer,),
    }
    return SimpleNamespace(**(values | changes))


@pytest.fixture
def state() -> AgentState:
    return AgentState(identity=find_identity(), token="t", url="http://x", executable="/bin/coder")


async def ask(state: AgentState, path: str, **query: str) -> HttpReply:
    wanted = {name: [value] for name, value in query.items()}
    return await HttpApi(state)._answer(HttpRequest("GET", path, wanted, b""))


async def test_missing_network_is_reported(state: AgentState) -> None:
    for path in ("/api/v0/netcheck", "/debug/magicsock"):
        assert (await ask(state, path)).status == 503
    assert (await ask(state, "/debug/prometheus")).status == 200
    assert (await ask(state, "/debug/logs")).status == 404


async def test_network_page(state: AgentState) -> None:
    state.overlay = _status
    report = json.loads((await ask(state, "/api/v0/netcheck")).body)
    assert report["severity"] == "ok" and report["net_info"]["PreferredDERP"] == 999 and report["net_info"]["PCP"]
    page = await ask(state, "/debug/magicsock")
    assert page.kind.startswith("text/html") and b"nodekey:&lt;1&gt;" in page.body and b"192.0.2.1:1" in page.body
    assert b"<td>cryptography, packet by packet</td>" in page.body
    state.overlay = lambda: _status(mapping_varies=True, relays=(_Relay(connected=False),))
    report = json.loads((await ask(state, "/api/v0/netcheck")).body)
    assert [one["code"] for one in report["warnings"]] == ["ESTUN02", "EUNKNOWN"]


async def test_metrics_are_prometheus_text(state: AgentState) -> None:
    state.overlay = _status
    state.sessions["ssh"] = 2
    lines = (await ask(state, "/debug/prometheus")).body.decode().splitlines()
    assert 'agent_sessions_open{app="ssh"} 2' in lines
    assert "agent_network_received_bytes_total 7" in lines and "agent_network_relays_connected 1" in lines
    assert "magicsock_netmap_num_peers 1" in lines and "magicsock_num_derp_conns 1" in lines


async def test_log_tail(state: AgentState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.log_file = tmp_path / "coder-agent.log"
    assert (await ask(state, "/debug/logs")).status == 404, "not written yet"
    state.log_file.write_bytes(b"first\nsecond\n")
    assert (await ask(state, "/debug/logs")).body == b"first\nsecond\n"
    assert (await ask(state, "/debug/logs", after="6")).body == b"second\n"
    assert (await ask(state, "/debug/logs", after="x")).status == 400
    assert (await ask(state, "/debug/logs", after="-1")).status == 400
    monkeypatch.setattr(diagnostics, "MAX_LOG", 7)
    assert (await ask(state, "/debug/logs")).body == b"second\n"


async def test_debug_listener_serves_no_files(state: AgentState) -> None:
    debug, metrics = HttpApi(state, dict(DEBUG_ROUTES)), HttpApi(state, dict(METRICS_ROUTES))
    manifest, files = HttpRequest("GET", "/debug/manifest", {}, b""), HttpRequest("GET", "/api/v0/read-file", {}, b"")
    assert (await debug._answer(manifest)).body != (await debug._answer(files)).body
    assert b"Route not found" in (await debug._answer(files)).body
    assert b"agent_sessions_open" in (await metrics._answer(HttpRequest("GET", "/metrics", {}, b""))).body
    assert b"Route not found" in (await metrics._answer(manifest)).body
