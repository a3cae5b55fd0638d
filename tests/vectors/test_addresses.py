"""Overlay addresses and node ids computed by upstream's own library."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from typing import Any
from uuid import UUID

import pytest

from coder.tailnet import addresses
from tests.kit.recordings.wire_recordings import load_json

VECTORS = load_json("addresses.json")


@pytest.mark.parametrize("vector", VECTORS["from_uuid"], ids=lambda v: v["uuid"])
def test_addresses_of_agents(vector: dict[str, Any]) -> None:
    agent = UUID(vector["uuid"])
    assert str(addresses.agent_address(agent)) == vector["tailscale_addr"]
    assert addresses.agent_address(agent).packed.hex() == vector["tailscale_raw"]
    assert str(addresses.service_address(agent)) == vector["coder_addr"]
    assert [f"{a}/128" for a in addresses.agent_addresses(agent)] == [
        vector["tailscale_prefix"],
        vector["coder_prefix"],
    ]
    assert str(addresses.node_id(agent)) == vector["node_id"]


@pytest.mark.parametrize("vector", VECTORS["random"], ids=lambda v: v["uuid"])
def test_random_addresses(vector: dict[str, Any]) -> None:
    identity = UUID(bytes=bytes.fromhex(vector["random_bytes"]), version=4)
    assert str(identity) == vector["uuid"]
    assert str(addresses.random_address(identity)) == vector["random_addr"]


def test_prefixes_and_legacy_address() -> None:
    assert IPv6Network(VECTORS["coder_service_prefix"]) == addresses.CODER_SERVICE_PREFIX
    assert IPv6Network(VECTORS["tailscale_service_prefix"]) == addresses.TAILSCALE_SERVICE_PREFIX
    assert IPv6Address(VECTORS["legacy_agent_addr"]) == addresses.LEGACY_AGENT_ADDRESS
    assert addresses.random_address() in addresses.TAILSCALE_SERVICE_PREFIX
