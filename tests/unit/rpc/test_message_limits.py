"""Limits of messages: small messages are not checked, deep ones completely."""

from __future__ import annotations

from typing import Any

from google.protobuf.struct_pb2 import Struct

from coder.rpc.message_limits import FieldDefaults, MessageLimits, fields_below
from coder.rpc.proto import agent_pb2, tailnet_pb2

LIMITS = MessageLimits(
    {
        "coder.agent.v2": FieldDefaults(10, 100),
        "coder.tailnet.v2": FieldDefaults(10, 100),
        "google.protobuf": FieldDefaults(10, 100),
    },
    {"coder.agent.v2.BatchCreateLogsRequest.logs": 50},
    {"coder.agent.v2.Startup.version": 5},
    total=20,
)


def test_smallest_limit_is_harmless_size() -> None:
    assert LIMITS.harmless_size(agent_pb2.UpdateStartupRequest.DESCRIPTOR) == 5
    assert LIMITS.harmless_size(agent_pb2.UpdateAppStatusRequest.DESCRIPTOR) == 100
    assert LIMITS.harmless_size(agent_pb2.GetManifestRequest.DESCRIPTOR) > 1 << 40


def test_recursive_messages_are_checked() -> None:
    deep: Any = "x" * 101
    for _ in range(9):
        deep = {"inner": deep}
    request = agent_pb2.PushContextStateRequest()
    body = Struct()
    body.update({"outer": deep})
    request.resources.add().mcp_server.tools.add().input_schema.CopyFrom(body)
    assert LIMITS.explain_excess(request) == "google.protobuf.Value.string_value is over the limit of 100 bytes"
    assert {field.name for field in fields_below(request.DESCRIPTOR)} > {"resources", "tools", "fields", "string_value"}


def test_message_maps_are_checked() -> None:
    event = tailnet_pb2.TelemetryEvent()
    for number in range(3):
        nodes = event.derp_map.regions[number].nodes
        for _ in range(6):
            nodes.add()
    assert LIMITS.explain_excess(event) == "the message has over 20 elements"
    event.derp_map.regions[2].nodes[5].host_name = "x" * 101
    del event.derp_map.regions[0], event.derp_map.regions[1]
    assert "Region.Node.host_name" in LIMITS.explain_excess(event)


def test_large_lists_count_apart() -> None:
    request = agent_pb2.BatchCreateLogsRequest(logs=[agent_pb2.Log()] * 50)
    assert not LIMITS.explain_excess(request)
    request.logs.add()
    assert "51" in LIMITS.explain_excess(request)
