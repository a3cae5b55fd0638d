"""Streams to ports of agents, for services of any process with a mesh node: this server or a workspace proxy.

The node itself is `tailnet/agent_dialer.py`; permission to reach the agent was checked before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import trio

from coder.api.base.refusals import BadGateway

if TYPE_CHECKING:
    from coder.tailnet.agent_dialer import AgentDialer, AgentStream

PTY_PORT = 2
DIAL_TIMEOUT = 15.0
# Seconds. A healthy agent answers in milliseconds; browsers time out at 30.


class Dials(Protocol):
    """Process with a node on the overlay."""

    agent_dialer: AgentDialer | None
    """Dialer; None before it is open."""


def open_dialer(world: Dials) -> AgentDialer:
    """Return the node's dialer. Raises BadGateway before it is open."""
    if world.agent_dialer is None:
        raise BadGateway("Internal error dialing agent.", "this server has no mesh node")
    return world.agent_dialer


async def dial(world: Dials, agent_id: UUID, port: int) -> AgentStream:
    """Open a stream to a port of the agent. Raises BadGateway."""
    dialer = open_dialer(world)
    try:
        with trio.fail_after(DIAL_TIMEOUT):
            return await dialer.dial(agent_id, port)
    except (OSError, trio.BrokenResourceError, trio.TooSlowError) as error:
        raise BadGateway("Internal error dialing agent.", "the agent does not answer over the mesh") from error


def unanswered(detail: str) -> BadGateway:
    """Return the refusal for callers of `dial` whose stream the other end refuses later."""
    return BadGateway("Internal error dialing agent.", detail)
