"""Status of a peer's path, for people and programs that query the node."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.wire import ip4
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.description import OverlayAddress, PeerStatus


def status_of(peer: Peer, region: int) -> PeerStatus:
    """Return a peer's status. `region`: of the relay that would carry packets to it."""
    selector = peer.paths.selector
    best = selector.best
    stats = peer.tunnel.stats
    return PeerStatus(
        public_key=peer.config.public_key,
        addresses=tuple(_overlay_address(ip) for ip in peer.tunnel.allowed),
        path=selector.state.value,
        endpoint=str(UdpAddress(*best.address)) if best else "",
        region=region,
        latency_s=best.latency if best else peer.paths.relay_latency,
        last_handshake=stats.last_handshake,
        rx_bytes=stats.rx_bytes,
        tx_bytes=stats.tx_bytes,
        direct_bytes=peer.direct_bytes,
        relayed_bytes=peer.relayed_bytes,
    )


def _overlay_address(address: bytes) -> OverlayAddress:
    return IPv4Address(address[12:]) if ip4.is_ipv4(address) else IPv6Address(address)
