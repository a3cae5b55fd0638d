"""Agents that a plain WireGuard client may reach at present: the policy's answer, as addresses.

Only this module decides it. The gateway asks for all clients together, a user's request for one client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from coder.coderd.services.access.api_tokens import check_reach
from coder.coderd.services.access.application_limits import refuse_applications
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.access.keys import keys_of
from coder.coderd.services.access.workspace_access import agent_resource, readers
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.workspaces import workspace_search as search_store
from coder.domain.access import scopes
from coder.domain.access.policy import Subject
from coder.domain.network.overlay import TAILSCALE_SERVICE_PREFIX, address_in, agent_addresses, workspace_address

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_ALIAS = "mesh alias"


@dataclass(frozen=True, slots=True)
class ReachableAgent:
    """An agent that a client may reach, with its addresses."""

    current: CurrentAgent
    stable: IPv6Address
    "Address that stays the same over builds."
    addresses: tuple[IPv6Address, ...]
    "Addresses of the agent itself, until its next build."


async def require_creation(ctx: Context, subject: Subject, user_id: UUID, *, limited: bool) -> None:
    """Require that the caller may create a client for the user. Raises Forbidden, NotFound.

    A client that is not `limited` to workspaces enters all of them, also future ones, and needs a key without limits.
    """
    require(subject, "create", keys_of(user_id))
    await refuse_applications(ctx, subject, "wireguard_client")
    if not limited:
        check_reach(subject, scopes.ALL)


async def targets_of(ctx: Context, subject: Subject) -> list[ReachableAgent]:
    """Return every current agent that the subject may enter by SSH, which are the agents a client may reach."""
    agents = await ctx.db.read(search_store.list_readable_agents, readers(subject))
    return [_target(current) for current in agents if may(subject, "ssh", agent_resource(current))]


def of_workspaces(targets: Sequence[ReachableAgent], workspace_ids: Sequence[UUID] | None) -> list[ReachableAgent]:
    """Return the targets in the workspaces a client is limited to; all of them for None."""
    if workspace_ids is None:
        return list(targets)
    limited_to = set(workspace_ids)
    return [target for target in targets if target.current.workspace_id in limited_to]


def client_address(client_id: UUID) -> IPv6Address:
    """Return a client's address, the same until the client is removed."""
    return address_in(TAILSCALE_SERVICE_PREFIX, client_id)


def client_alias(client_id: UUID) -> IPv6Address:
    """Return a client's address in the mesh for traffic to stable addresses (`mesh/drivers/wireguard_gateway.py`)."""
    return address_in(TAILSCALE_SERVICE_PREFIX, uuid5(client_id, _ALIAS))


def _target(current: CurrentAgent) -> ReachableAgent:
    return ReachableAgent(
        current, workspace_address(current.workspace_id, current.agent.name), agent_addresses(current.agent.id)
    )
