"""Relay map: regions and the addresses of their nodes.

Values only. The JSON and protobuf forms are translated outside of the mesh; field meanings are those of the DERP map
(docs/protocol/derp.md, "The map").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_STUN_PORT = 3478
DEFAULT_DERP_PORT = 443


@dataclass(frozen=True, slots=True)
class DerpNode:
    """A server of a region: a relay, a STUN server or both."""

    name: str
    region_id: int
    host_name: str
    cert_name: str = ""
    ipv4: str = ""
    """Empty: resolve the host name; "none": do not use this family."""
    ipv6: str = ""
    stun_port: int = 0
    """0 means 3478, -1 means that there is no STUN server."""
    stun_only: bool = False
    derp_port: int = 0
    """0 means 443."""
    insecure_for_tests: bool = False
    force_http: bool = False
    stun_test_ip: str = ""
    can_port_80: bool = False


@dataclass(frozen=True, slots=True)
class DerpRegion:
    """Servers close to each other that share a number."""

    region_id: int
    region_code: str
    region_name: str
    nodes: tuple[DerpNode, ...]
    embedded_relay: bool = False
    avoid: bool = False
    """Never chosen as home."""

    def relay_nodes(self) -> tuple[DerpNode, ...]:
        """Return the nodes that relay packets."""
        return tuple(node for node in self.nodes if not node.stun_only)


@dataclass(frozen=True, slots=True)
class DerpMap:
    """All regions by number."""

    regions: Mapping[int, DerpRegion] = field(default_factory=dict)
    region_score: Mapping[int, float] = field(default_factory=dict)
    """Multipliers on measured latencies; absent or not positive means 1."""

    def relay_regions(self) -> list[DerpRegion]:
        """Return regions that may be a home, in the order of their numbers."""
        # In a fixed order, so that equal latencies and seeds choose alike on every node.
        regions = (self.regions[number] for number in sorted(self.regions))
        return [region for region in regions if not region.avoid and region.relay_nodes()]

    def stun_servers(self) -> list[tuple[str, int]]:
        """Return (host, port) of every STUN server, each once, in the order of the regions."""
        # A dictionary keeps the order and drops duplicates of two regions: one server asked twice would pass for two
        # witnesses (`Mappings.varies`).
        servers: dict[tuple[str, int], None] = {}
        for number in sorted(self.regions):
            for node in self.regions[number].nodes:
                if node.stun_port >= 0:
                    host = node.stun_test_ip or node.host_name
                    servers[host, node.stun_port or DEFAULT_STUN_PORT] = None
        return list(servers)
