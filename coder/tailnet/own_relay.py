"""How a node beside a relay reaches relays: the one of its own process through memory, all others over the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import trio

from coder.mesh.derp_map import DerpNode, DerpRegion
from coder.mesh.relay import DerpDialer, DerpTransport
from coder.tailnet.relay import RelayDialer

NEARER = 0.0001
"""Seconds to a relay in our own memory: nearer than anything that can be measured."""


@dataclass(frozen=True, slots=True)
class OwnRelayDialer:
    """The mesh's DerpDialer and LatencyProbe, as `RelayDialer` is. Raises RelayError."""

    inside: DerpDialer
    others: RelayDialer
    is_own: Callable[[DerpRegion], bool]

    async def __call__(self, region: DerpRegion, node: DerpNode) -> DerpTransport:
        return await (self.inside if self.is_own(region) else self.others)(region, node)

    async def probe(self, region: DerpRegion, node: DerpNode) -> float:
        """Seconds from request to answer."""
        if self.is_own(region):
            await trio.lowlevel.checkpoint()
            return NEARER
        return await self.others.probe(region, node)
