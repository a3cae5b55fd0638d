"""Relay map in three forms, and the embedded relay as each client sees it."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.rpc.proto import tailnet_pb2
from coder.tailnet import derpmap
from tests.kit.recordings.wire_recordings import load_json, load_lines, message_type

EMBEDDED = DerpNode("999b", 999, "127.0.0.1", stun_port=-1, derp_port=7080, force_http=True)
MAP = DerpMap(
    {
        7: DerpRegion(7, "x", "X", (DerpNode("7a", 7, "stun.example", stun_only=True),), avoid=True),
        999: DerpRegion(999, "coder", "Coder Embedded Relay", (EMBEDDED,), embedded_relay=True),
    },
    {7: 1.5},
)


def recorded() -> Any:
    example = next(e for e in load_json("http_examples.json") if e["name"] == "generic connection info")
    return json.loads(example["response_body"])["derp_map"]


def test_json_matches_recording() -> None:
    assert derpmap.to_json(derpmap.from_json(recorded())) == recorded()
    assert derpmap.from_json(recorded()) == DerpMap({999: MAP.regions[999]})


def test_forms_round_trip() -> None:
    assert derpmap.from_json(json.loads(json.dumps(derpmap.to_json(MAP)))) == MAP
    assert derpmap.from_proto(derpmap.to_proto(MAP)) == MAP


def test_recorded_protobuf_maps() -> None:
    kind = "coder.tailnet.v2.DERPMap"
    for vector in load_lines("proto_messages_agent_tailnet.jsonl"):
        if vector["type"] == kind:
            message = message_type(kind).FromString(bytes.fromhex(vector["hex"]))
            assert derpmap.to_proto(derpmap.from_proto(cast("tailnet_pb2.DERPMap", message))) == message


def test_home_params_are_always_set() -> None:
    assert derpmap.to_proto(DerpMap()).HasField("home_params")


@pytest.mark.parametrize(
    ("url", "host", "port", "plain"),
    [
        ("http://10.0.0.1:3000", "10.0.0.1", 3000, True),
        ("https://coder.example.com", "coder.example.com", 443, False),
        ("http://coder.example.com/", "coder.example.com", 80, True),
        ("https://[fd00::1]:8443", "fd00::1", 8443, False),
    ],
)
def test_embedded_relay_uses_server_address(url: str, host: str, port: int, plain: bool) -> None:
    node = derpmap.with_embedded(MAP, url).regions[999].nodes[0]
    assert (node.host_name, node.derp_port, node.force_http) == (host, port, plain)
    assert derpmap.with_embedded(MAP, url).regions[7] == MAP.regions[7]


@pytest.mark.parametrize("number", [1 << 31, (1 << 63) - 1, -(1 << 31) - 1])
def test_regions_beyond_home_numbers_are_left_out(number: int) -> None:
    message = tailnet_pb2.DERPMap()
    message.regions[number].region_id = number
    message.regions[number].nodes.add(name="n", host_name="h")
    message.regions[5].region_id = 5
    assert list(derpmap.from_proto(message).regions) == [5]
    document: Any = {"Regions": {str(number): {"RegionID": number, "RegionCode": "", "RegionName": "", "Nodes": []}}}
    assert derpmap.from_json(document).regions == {}
