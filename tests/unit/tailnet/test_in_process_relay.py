"""A node in a relay's process uses the network for other relays only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest
import trio
import trio.testing

from coder.mesh.derp_map import DerpNode, DerpRegion
from coder.mesh.relay import DerpTransport
from coder.tailnet.in_process_relay import OWN_LATENCY, InProcessRelayDialer
from coder.tailnet.relay import RelayDialer


@dataclass
class RecordingDialler:
    """Dialler that only records its calls."""

    regions: list[int] = field(default_factory=list)
    probed: list[int] = field(default_factory=list)

    async def __call__(self, region: DerpRegion, node: DerpNode) -> DerpTransport:
        await trio.lowlevel.checkpoint()
        self.regions.append(region.region_id)
        return DerpTransport(trio.testing.memory_stream_pair()[0], b"")

    async def probe(self, region: DerpRegion, node: DerpNode) -> float:
        await trio.lowlevel.checkpoint()
        self.probed.append(region.region_id)
        return 0.02


NODE = DerpNode(name="1a", region_id=1, host_name="relay.example.com")


@pytest.mark.parametrize(("number", "own"), [(1, True), (2, False)])
async def test_own_region_uses_memory(number: int, own: bool) -> None:
    region = DerpRegion(region_id=number, region_code="x", region_name="x", nodes=(NODE,))
    inside, others = RecordingDialler(), RecordingDialler()
    dialer = InProcessRelayDialer(inside, cast(RelayDialer, others), lambda region: region.region_id == 1)

    await dialer(region, NODE)
    latency = await dialer.probe(region, NODE)

    assert (inside.regions, others.regions) == (([1], []) if own else ([], [2]))
    assert (latency, inside.probed, others.probed) == ((OWN_LATENCY, [], []) if own else (0.02, [], [2]))
