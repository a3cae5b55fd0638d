"""Every recorded and constructed message decodes to the recorded value, and encodes to the recorded bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import json_format

from tests.kit.recordings.wire_recordings import load_lines, message_type, same_message

FILLED = load_lines("proto_filled.jsonl")
OURS = {
    "provisionerd.PlannedChanges",
    "provisionerd.PlannedChanges.Attribute",
    "provisionerd.PlannedChanges.Resource",
}
"""Messages that upstream does not have, and therefore no vectors of it."""
REAL = load_lines("proto_messages_agent_tailnet.jsonl") + load_lines("proto_messages_provisioner.jsonl")


def decode(vector: dict[str, Any]) -> Any:
    return message_type(vector["type"]).FromString(bytes.fromhex(vector["hex"]))


@pytest.mark.parametrize("vector", [*FILLED, *REAL], ids=lambda v: f"{v['type']}-{v.get('oneof', '')}")
def test_decodes_to_the_recorded_value(vector: dict[str, Any]) -> None:
    assert same_message(decode(vector), json_format.ParseDict(vector["json"], message_type(vector["type"])()))


@pytest.mark.parametrize("vector", [*FILLED, *REAL], ids=lambda v: f"{v['type']}-{v.get('oneof', '')}")
def test_encoding_round_trips(vector: dict[str, Any]) -> None:
    recorded = bytes.fromhex(vector["hex"])
    encoded = decode(vector).SerializeToString(deterministic=True)
    # Upstream writes oneof members last and maps in any order: same fields, another order. Sizes must agree.
    assert len(encoded) == len(recorded)
    assert decode({"type": vector["type"], "hex": encoded.hex()}) == decode(vector)


def test_most_messages_encode_identically() -> None:
    different = [
        v["type"] for v in [*FILLED, *REAL] if decode(v).SerializeToString(deterministic=True).hex() != v["hex"]
    ]
    # The README of the vectors counts 15 constructed and 3 recorded ones with one-of members; maps may add a few.
    assert len(different) <= 40


def test_every_message_type_of_upstream_has_vector() -> None:
    from coder.rpc.proto import agent_pb2, provisioner_pb2, provisionerd_pb2, tailnet_pb2

    def names(messages: Any) -> Iterator[str]:
        for message in messages:
            if not message.GetOptions().map_entry:
                yield message.full_name
                yield from names(message.nested_types)

    ours: set[str] = set()
    for module in (agent_pb2, provisioner_pb2, provisionerd_pb2, tailnet_pb2):
        ours.update(names(module.DESCRIPTOR.message_types_by_name.values()))
    assert ours - OURS == {v["type"] for v in FILLED}
    assert ours >= OURS
