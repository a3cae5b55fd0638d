"""Translation of a coordinator's peer into the core's types."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.peers.peer import PeerParameters
from coder.mesh.core.wire import ip4
from coder.mesh.core.wire.address import parse_endpoint_untrusted
from coder.mesh.description import AllowedIp, PeerConfig


def peer_parameters(config: PeerConfig) -> PeerParameters:
    """Return the parameters. Raises ValueError when the peer claims more than single addresses."""
    return PeerParameters(
        config.public_key,
        config.disco_key,
        tuple(_overlay_address(ip) for ip in config.allowed_ips),
        config.home_derp,
        _readable_endpoints(config.endpoints),
        config.keepalive,
    )


def _overlay_address(ip: AllowedIp) -> bytes:
    """Return 16 bytes; an IPv4 address is mapped."""
    if isinstance(ip, IPv6Address | IPv4Address):
        return ip4.address16(ip.packed)
    network = ip_network(ip)
    if network.num_addresses != 1:
        raise ValueError(f"a peer has single addresses, not {network}")
    return ip4.address16(network.network_address.packed)


def _readable_endpoints(endpoints: tuple[str | Address, ...]) -> tuple[Address, ...]:
    readable: list[Address] = []
    for text in endpoints:
        if not isinstance(text, str):
            readable.append(text)
            continue
        try:
            readable.append(parse_endpoint_untrusted(text))
        except WireError:
            continue  # a newer form of address: the others still help
    return tuple(readable)
