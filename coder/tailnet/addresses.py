"""Overlay addresses for users of a node: the rules of domain/network/overlay.py and a random address for clients."""

from __future__ import annotations

import secrets
import uuid
from ipaddress import IPv6Address

from coder.domain.network.overlay import (
    CODER_SERVICE_PREFIX,
    LEGACY_AGENT_ADDRESS,
    TAILSCALE_SERVICE_PREFIX,
    address_in,
    agent_address,
    agent_addresses,
    node_id,
    service_address,
)

__all__ = [
    "CODER_SERVICE_PREFIX",
    "LEGACY_AGENT_ADDRESS",
    "TAILSCALE_SERVICE_PREFIX",
    "address_in",
    "agent_address",
    "agent_addresses",
    "node_id",
    "random_address",
    "random_node_id",
    "service_address",
]


def random_address(identity: uuid.UUID | None = None) -> IPv6Address:
    """Return a client's address: that of a random UUID in the Tailscale prefix."""
    return address_in(TAILSCALE_SERVICE_PREFIX, identity or uuid.uuid4())


def random_node_id() -> int:
    """Return a client's node id."""
    return secrets.randbits(62) + 1
