"""The relay map by configuration: the recorded map by default, with additional regions on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coder.base.errors import CoderError
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.network.derp_map import build_derp_map
from coder.tailnet import derpmap
from tests.kit.recordings.wire_recordings import load_json
from tests.kit.server.server_in_process import running_coderd

NO_STUN = ("disable",)
URL = "http://127.0.0.1:7080"


def test_default_map_matches_recording() -> None:
    example = next(e for e in load_json("http_examples.json") if e["name"] == "generic connection info")
    assert (
        derpmap.to_json(build_derp_map(ServerConfig(derp_server_stun_addresses=NO_STUN), URL))
        == json.loads(example["response_body"])["derp_map"]
    )


def test_stun_servers_are_regions() -> None:
    config = ServerConfig(derp_server_stun_addresses=("stun.example:19302", "stun2.example"))
    regions = build_derp_map(config, URL).regions
    assert [(r.region_code, r.nodes[0].host_name, r.nodes[0].stun_port) for r in list(regions.values())[1:]] == [
        ("coder_stun_1000", "stun.example", 19302),
        ("coder_stun_1001", "stun2.example", 3478),
    ]
    assert not build_derp_map(ServerConfig(derp_server_stun_addresses=("disable",)), URL).regions.keys() - {999}


def test_embedded_relay_serves_stun() -> None:
    node = (
        build_derp_map(ServerConfig(derp_server_stun_addresses=NO_STUN, stun_address="0.0.0.0:3479"), URL)
        .regions[999]
        .nodes[0]
    )
    assert (node.stun_port, node.stun_only) == (3479, False)


@pytest.mark.parametrize(("address", "port"), [("", -1), ("127.0.0.1:0", -1), ("0.0.0.0:1", 1)])
def test_unknown_stun_port_is_not_announced(address: str, port: int) -> None:
    config = ServerConfig(derp_server_stun_addresses=NO_STUN, stun_address=address)
    assert build_derp_map(config, URL).regions[999].nodes[0].stun_port == port


def test_no_stun_without_direct_paths() -> None:
    config = ServerConfig(
        stun_address=":3478", derp_server_stun_addresses=("stun.example",), block_direct_connections=True
    )
    derp_map = build_derp_map(config, URL)
    assert not derp_map.stun_servers()
    assert list(derp_map.regions) == [999]


def test_stun_nodes_removed_without_direct_paths(tmp_path: Path) -> None:
    stun = {"Name": "stun", "RegionID": 5, "HostName": "stun.example", "STUNOnly": True, "STUNPort": 3478}
    relay = {"Name": "6a", "RegionID": 6, "HostName": "derp.example"}
    path = tmp_path / "map.json"
    names = {"RegionCode": "x", "RegionName": "X"}
    path.write_text(
        json.dumps(
            {
                "Regions": {
                    "5": {"RegionID": 5, **names, "Nodes": [stun]},
                    "6": {"RegionID": 6, **names, "Nodes": [{**stun, "RegionID": 6}, relay]},
                }
            }
        )
    )
    regions = build_derp_map(
        ServerConfig(derp_server_stun_addresses=NO_STUN, derp_config_path=str(path), block_direct_connections=True), URL
    ).regions
    assert list(regions) == [6, 999]
    assert [(node.name, node.stun_port) for node in regions[6].nodes] == [("6a", -1)]


def test_file_adds_regions(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"Regions": {"7": {"RegionID": 7, "RegionCode": "x", "RegionName": "X", "Nodes": []}}}))
    assert list(
        build_derp_map(ServerConfig(derp_server_stun_addresses=NO_STUN, derp_config_path=str(path)), URL).regions
    ) == [7, 999]
    path.write_text("[]")
    with pytest.raises(CoderError, match="is no relay map"):
        build_derp_map(ServerConfig(derp_server_stun_addresses=NO_STUN, derp_config_path=str(path)), URL)


async def test_url_without_map_prevents_start() -> None:
    async with running_coderd() as other:
        address = other.url.replace("://", "://user:s3cret@")
        with pytest.raises(CoderError, match="no relay map at") as caught:
            async with running_coderd(derp_config_url=f"{address}/healthz"):
                pass
        assert "s3cret" not in str(caught.value)
