"""Addresses on the overlay, derived from an agent's id (docs/protocol/coordination.md#addresses).

Two /48 prefixes carry the last ten bytes of a UUID: the Tailscale one, which clients dial, and the Coder one, which
Coder Desktop routes. Not here: the rules for claiming an address (coordination.py).
"""

from __future__ import annotations

import base64
from ipaddress import IPv6Address, IPv6Network
from uuid import UUID, uuid5

TAILSCALE_SERVICE_PREFIX = IPv6Network("fd7a:115c:a1e0::/48")
CODER_SERVICE_PREFIX = IPv6Network("fd60:627a:a42b::/48")
LEGACY_AGENT_ADDRESS = IPv6Address("fd7a:115c:a1e0:49d6:b259:b7ac:b1b2:48f4")
"""Address that all agents once shared; still accepted from them."""

KEY_SIZE = 32
"Bytes of a public key."

SSH_PORT = 1
"The agent's SSH server for our own clients; plain OpenSSH over a VPN uses 22."
TERMINAL_PORT = 2
SPEEDTEST_PORT = 3
HTTP_PORT = 4


def read_public_key(text: str) -> bytes | None:
    """Decode a WireGuard public key from base64; all zeros is not a key. None for anything else."""
    try:
        result = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return result if len(result) == KEY_SIZE and any(result) else None


def agent_address(agent_id: UUID) -> IPv6Address:
    """Return the address clients dial (fd7a…)."""
    return address_in(TAILSCALE_SERVICE_PREFIX, agent_id)


def service_address(agent_id: UUID) -> IPv6Address:
    """Return the address Coder Desktop routes (fd60…)."""
    return address_in(CODER_SERVICE_PREFIX, agent_id)


def agent_addresses(agent_id: UUID) -> tuple[IPv6Address, IPv6Address]:
    """Return both, in the order an agent advertises them."""
    return agent_address(agent_id), service_address(agent_id)


def workspace_address(workspace_id: UUID, agent_name: str) -> IPv6Address:
    """Return an agent's address that is stable over builds, which give agents new ids; ours.

    Only the gateway for plain WireGuard clients answers for it.
    """
    return address_in(TAILSCALE_SERVICE_PREFIX, uuid5(workspace_id, agent_name))


def address_in(prefix: IPv6Network, identity: UUID) -> IPv6Address:
    """Replace the first six bytes of `identity` with the prefix."""
    return IPv6Address(prefix.network_address.packed[:6] + identity.bytes[6:])


def node_id(agent_id: UUID) -> int:
    """Return the number in an agent's node: the absolute value of its UUID's last eight bytes.

    The most negative number has no absolute value in 64 bits and is returned unchanged, as in upstream.
    """
    number = int.from_bytes(agent_id.bytes[8:], "big", signed=True)
    return number if number == -(1 << 63) else abs(number)
