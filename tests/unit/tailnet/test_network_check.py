"""`coder netcheck`: every transport is tried, reported as text, and in upstream's JSON."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.json_types import as_object
from coder.base.secret import Secret
from coder.cli.core.parsing import parse
from coder.cli.declarations.network.netcheck import NETCHECK
from coder.cli.network import netcheck
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.stun import serve_stun
from coder.net.policy import DialPolicy
from coder.tailnet import verdicts
from coder.tailnet.network_check import check_network, to_json
from coder.tailnet.relay import RelayDialer
from tests.kit.api.api_description import check
from tests.kit.network.middleboxes import UpgradeStripper, serve_box
from tests.kit.server.server_in_process import World, running_coderd


def policy_of(world: World, url: str = "") -> DialPolicy:
    return DialPolicy(url or world.url, token=Secret(world.token))


def check_shape(report: dict[str, object]) -> None:
    assert set(report) >= {"derp", "interfaces"}
    derp: Any = report["derp"]
    # The schema takes Go's maps with numeric keys for lists; their content is checked separately.
    for number, region in derp["regions"].items():
        assert number.isdigit()
        check("DERPRegionReport", region)
    check("NetcheckReport", derp["netcheck"])
    check("DERPHealthReport", {k: v for k, v in derp.items() if k != "netcheck"} | {"regions": []})


async def test_open_and_stripping_networks(capsys: pytest.CaptureFixture[str]) -> None:
    async with trio.open_nursery() as nursery, running_coderd_with_stun(nursery) as world:
        found = await check_network(policy_of(world))
        report: Any = to_json(found)
        states = {item["name"]: item["state"] for item in report["rungs"]}
        assert states == dict.fromkeys(
            ("api", "links", "relay-upgrade", "relay-websocket", "relay-stream", "udp", "direct"), "ok"
        )
        derp = report["derp"]
        node = derp["regions"]["999"]["node_reports"][0]
        assert (derp["healthy"], node["can_exchange_messages"], node["uses_websocket"]) == (True, True, False)
        assert derp["netcheck"]["UDP"] is True
        assert derp["netcheck"]["GlobalV4"].startswith("127.0.0.1:")
        assert derp["netcheck"]["MappingVariesByDestIP"] is False
        assert derp["netcheck"]["RegionLatency"]["999"] > 0
        assert [one["name"] for one in report["interfaces"]["interfaces"]].count("lo") == 1
        regions = derp["regions"].values()
        assert all(item["stun"]["CanSTUN"] for r in regions for item in r["node_reports"] if item["stun"]["Enabled"])

        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
        assert await netcheck._main(parse(NETCHECK, ["--disable-direct-connections"], env)) == 0
        output = capsys.readouterr()
        assert json.loads(output.out)["derp"]["netcheck"]["PreferredDERP"] == 999
        assert "✔ Links " in output.err
        assert "· Direct path" in output.err

        host, port = world.url.removeprefix("http://").rsplit(":", 1)
        box = await nursery.start(serve_box, UpgradeStripper((host, int(port))))
        stripped = await check_network(policy_of(world, f"http://127.0.0.1:{box}"))
        states = {item.name: item.state for item in stripped.transports}
        assert (states["links"], states["relay-upgrade"], states["relay-websocket"], states["relay-stream"]) == (
            "warning",
            "warning",
            "warning",
            "ok",
        )
        assert any("strips upgrades" in line for line in verdicts.lines_of(stripped.transports))
        assert as_object(to_json(stripped)["derp"])["healthy"] is True
        nursery.cancel_scope.cancel()


class running_coderd_with_stun:  # noqa: N801 - reads as the context manager it is
    """A server that names two STUN servers of ours."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._stack = ExitStack()

    async def __aenter__(self) -> World:
        ports = [await self._nursery.start(serve_stun, "127.0.0.1", 0) for _ in range(2)]
        addresses = tuple(f"127.0.0.1:{port}" for port in ports)
        self._inner = running_coderd(first_user=True, derp_server_stun_addresses=addresses)
        return await self._inner.__aenter__()

    async def __aexit__(self, *error: object) -> object:
        return await self._inner.__aexit__(*error)  # type: ignore[arg-type]


async def test_third_party_relay(tmp_path: Path) -> None:
    """A second relay in the map is tried and used without our token; direct paths are forbidden."""
    async with running_coderd(first_user=True, derp_server_region_id=900) as other:
        port = int(other.url.rsplit(":", 1)[1])
        node = {
            "Name": "7a",
            "RegionID": 7,
            "HostName": "127.0.0.1",
            "DERPPort": port,
            "ForceHTTP": True,
            "STUNPort": -1,
        }
        region = {"EmbeddedRelay": False, "RegionID": 7, "RegionCode": "far", "RegionName": "Far away", "Nodes": [node]}
        path = tmp_path / "map.json"
        path.write_text(json.dumps({"Regions": {"7": region}}))
        async with running_coderd(first_user=True, derp_config_path=str(path), block_direct_connections=True) as world:
            found = await check_network(policy_of(world))
            report: Any = to_json(found)
            check_shape(report)
            assert set(report["derp"]["regions"]) == {"7", "999"}
            assert report["derp"]["regions"]["7"]["node_reports"][0]["can_exchange_messages"] is True
            states = {item.name: (item.state, item.text) for item in found.transports}
            assert states["udp"][0] == "skipped"
            assert states["direct"] == ("skipped", "the deployment allows relayed connections only")
            dialer = RelayDialer(policy_of(world))
            far = found.derp_map.regions[7]
            assert dialer._policy_of(far, far.nodes[0]).token is None


@pytest.mark.parametrize(
    ("facts", "state", "expected"),
    [
        ({"endpoint": "1.2.3.4:5"}, "ok", "in use, by 1.2.3.4:5"),
        ({"is_disabled": True, "udp_works": True}, "skipped", "--disable-direct-connections"),
        ({"is_blocked": True}, "skipped", "relayed connections only"),
        ({"peer_endpoints": 0}, "warning", "announces no address"),
        ({"udp_works": False, "peer_endpoints": 2}, "warning", "UDP is blocked here"),
        ({"udp_works": True, "varies": True}, "warning", "endpoint-dependent mapping"),
        ({"udp_works": True, "peer_endpoints": 3}, "warning", "3 addresses"),
        ({"udp_works": True}, "ok", "likely"),
        ({}, "skipped", "not known"),
    ],
)
def test_direct_path_texts(facts: dict[str, object], state: str, expected: str) -> None:
    verdict = verdicts.direct(**facts)  # type: ignore[arg-type]
    assert verdict.state == state
    assert expected in verdict.text


def test_unreachable_relay() -> None:
    assert DerpServer(PrivateKey(bytes([9]) * 32)).counters.current == 0
    lines = verdicts.lines_of(
        [
            verdicts.relay("upgrade", "the upgrade to DERP was answered with status 502", is_needed=True),
            verdicts.relay("websocket", "works", is_needed=True, latency_s=0.0123),
            verdicts.relay("stream", "not tried", is_needed=False),
        ]
    )
    assert lines[0].startswith("❗ Relay by upgrade         the upgrade to DERP was answered with status 502")
    assert lines[1].strip().startswith("→ Harmless")
    assert lines[2] == "✔ Relay by WebSocket       works (12.3 ms)"
    assert lines[3] == "· Relay by plain requests  not needed"
