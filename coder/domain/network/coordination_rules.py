"""Rules for requests to the coordinator: the messages, and the peers that may send them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Protocol
from uuid import UUID

from coder.domain.network.overlay import LEGACY_AGENT_ADDRESS, agent_addresses

MAX_ADDRESSES = 16
"""Ours: addresses of one node. Agents have three, clients one or two."""


@dataclass(frozen=True, slots=True)
class CoordinatedNode:
    """Node a peer sends about itself. Two are equal when their bodies are."""

    body: bytes
    addresses: tuple[str, ...] = field(default=(), compare=False)
    allowed_ips: tuple[str, ...] = field(default=(), compare=False)
    keys: tuple[bytes, ...] = field(default=(), compare=False)
    """Keys that identify the node to others (WireGuard and disco, each in canonical form); no other node may use them.
    """


@dataclass(frozen=True, slots=True)
class CoordinationRequest:
    """Request of a peer: any subset of the fields in one message."""

    node: CoordinatedNode | None = None
    add_tunnel: UUID | None = None
    remove_tunnel: UUID | None = None
    disconnect: bool = False
    ready_for_handshake: tuple[UUID, ...] = ()


class CoordinationRules(Protocol):
    def explain_refusal(self, request: CoordinationRequest) -> str:
        """Return why `request` is refused; empty when it is allowed."""
        ...


@dataclass(frozen=True, slots=True)
class FullAccess:
    """Rules for the server itself and workspace proxies."""

    def explain_refusal(self, _request: CoordinationRequest) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class AgentAccess:
    """Rules for an agent: it opens no tunnels and claims only its own addresses."""

    agent_id: UUID

    def explain_refusal(self, request: CoordinationRequest) -> str:
        if request.add_tunnel is not None:
            return "agents cannot open tunnels"
        if request.node is None:
            return ""
        allowed = {*agent_addresses(self.agent_id), LEGACY_AGENT_ADDRESS}
        return _explain_prefixes("Addresses", request.node.addresses, allowed) or _explain_prefixes(
            "AllowedIPs", request.node.allowed_ips, allowed
        )


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """Rules for a client of one agent, or (without `agent_id`) of the agents the service already checked."""

    agent_id: UUID | None = None

    def explain_refusal(self, request: CoordinationRequest) -> str:
        if request.add_tunnel is not None and self.agent_id not in {None, request.add_tunnel}:
            return f"invalid agent id, expected {self.agent_id}, got {request.add_tunnel}"
        if request.ready_for_handshake:
            return "clients may not send ready_for_handshake"
        if request.node is None:
            return ""
        agents = {LEGACY_AGENT_ADDRESS, *(agent_addresses(self.agent_id) if self.agent_id else ())}
        return _explain_prefixes("Addresses", request.node.addresses, None, agents) or _explain_prefixes(
            "AllowedIPs", request.node.allowed_ips, None, agents
        )


def _explain_prefixes(
    name: str, prefixes: Sequence[str], allowed: set[IPv6Address] | None, others: Collection[IPv6Address] = ()
) -> str:
    """Check prefixes: only `allowed` ones, or any but `others` when `allowed` is empty."""
    if len(prefixes) > MAX_ADDRESSES:
        return f"{name}: at most {MAX_ADDRESSES} addresses, got {len(prefixes)}"
    for prefix in prefixes:
        text, _, bits = prefix.partition("/")
        try:
            address = IPv6Address(text)
        except ValueError:
            return f"{name}: invalid node address, got {text[:100]}"
        if bits != "128":
            return f"{name}: invalid address bits, expected 128, got {bits[:100] or 0}"
        if address.scope_id or address in others or (allowed is not None and address not in allowed):
            return f"{name}: invalid node address, got {address}"
    return ""
