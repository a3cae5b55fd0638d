"""Values for a node's configuration, peers and status; `node.py` uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Literal

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.derpmap import DerpMap
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.drivers.derp_client import RelayStatus
from coder.mesh.drivers.transport import DerpDialer, LatencyProbe

OverlayAddress = IPv6Address | IPv4Address
AllowedIp = str | OverlayAddress | IPv6Network | IPv4Network
Tap = Callable[[Sequence[bytes], bool], None]
"""Sees inner packets; True: outgoing."""
TraceValue = str | float | bool | Address | None
TraceFields = Mapping[str, TraceValue]


@dataclass(frozen=True)
class NodeConfig:
    """Configuration of a node."""

    addresses: tuple[OverlayAddress, ...]
    """The node's overlay addresses; the first of a family is the source of its outgoing connections there."""
    derp_map: DerpMap
    derp_dialer: DerpDialer
    private_key: PrivateKey | None = None
    """Private key; None: a fresh one, as for every process."""
    mtu: int = 1280
    direct: bool = True
    """Whether UDP paths may be used at all."""
    listen_port: int = 0
    """UDP port, 0: any."""
    latency_probe: LatencyProbe | None = None
    """Measures regions; None: the dialer's `probe` method, if it has one; else regions are not measured."""
    trace: Callable[[str, TraceFields], None] | None = None
    """Called with events on paths: an event's name and its fields."""
    tap: Tap | None = None
    """Sees every inner packet in both directions (pcap.py). Costs a copy per packet."""


@dataclass(frozen=True)
class PeerConfig:
    """Configuration of a peer from the coordinator."""

    public_key: PublicKey
    disco_key: PublicKey
    allowed_ips: tuple[AllowedIp, ...]
    """The peer's overlay addresses, /128 or /32 each; others are refused."""
    home_derp: int = 0
    endpoints: tuple[str | Address, ...] = ()
    """`ip:port`, `[v6]:port` or pairs; unreadable ones are left out."""
    keepalive: bool = False


@dataclass(frozen=True)
class SelfInfo:
    """Information about this node for its peers."""

    public_key: PublicKey
    disco_key: PublicKey
    preferred_derp: int
    """Home region; 0 while unknown."""
    derp_latency: Mapping[str, float]
    """`<region>-v4` -> seconds."""
    endpoints: tuple[UdpAddress, ...]
    forced_websocket: Mapping[int, str]
    """Region -> why its connection uses a WebSocket."""
    addresses: tuple[OverlayAddress, ...]


@dataclass(frozen=True)
class PingResult:
    """The answer to a disco ping."""

    latency_s: float
    via: Literal["direct", "relay"]
    endpoint: str
    """Empty when relayed."""
    region: int
    """0 when direct."""
    region_code: str = ""


@dataclass(frozen=True)
class PeerStatus:
    """Status of a peer, for people."""

    public_key: PublicKey
    addresses: tuple[OverlayAddress, ...]
    path: Literal["relayed", "direct", "doubtful"]
    endpoint: str
    region: int
    latency_s: float | None
    last_handshake: float | None
    """Time on the node's clock (trio.current_time)."""
    rx_bytes: int
    tx_bytes: int
    direct_bytes: int
    relayed_bytes: int


@dataclass(frozen=True)
class NodeStatus:
    """Status of the node, for people."""

    self_info: SelfInfo
    udp_ports: tuple[int, int]
    """IPv4, IPv6; 0 when the family is missing."""
    udp_works: bool
    """Whether a STUN server ever answered in the last round."""
    mapping_varies: bool | None
    stun_answers: int
    """STUN servers that answered in the last round."""
    port_mapping: str
    """`PCP` or `NAT-PMP` when a router answered, `none` when a router did not answer; empty: no router had to be
    asked."""
    mapped_endpoint: str
    """Address by which the router lets others reach us; empty without a mapping."""
    relays: tuple[RelayStatus, ...]
    peers: tuple[PeerStatus, ...]
    dropped_strangers: int
    """Datagrams from addresses that no peer had proven."""
    cipher: str
    """The library that encrypts packets, and how: `OpenSSL 3.0.19 …, in batches`, or packet by packet."""
