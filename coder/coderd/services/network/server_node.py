"""This server's own node on the overlay, which reaches agents (docs/protocol/agent-services.md#the-servers-own-node).

Dialing is `tailnet/agent_dialer.py`. In-memory pipes connect the node to this process's coordinator and relay.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from coder.base.secret import Secret
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.network.tailnet_rpc import TailnetPeer, TailnetService
from coder.domain.network.coordination_rules import FullAccess
from coder.mesh.node import NodeConfig, open_node, pipe_pair
from coder.mesh.relay import DerpDialer
from coder.net.policy import DialPolicy
from coder.rpc.session import Session, open_session
from coder.tailnet.addresses import random_address, random_node_id
from coder.tailnet.agent_dialer import AgentDialer
from coder.tailnet.controller import Controller, open_controller
from coder.tailnet.in_process_relay import InProcessRelayDialer
from coder.tailnet.reconnect import keep_coordinated
from coder.tailnet.relay import RelayDialer

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: run the server's node. Needs the relay and the coordinator."""
    async with trio.open_nursery() as nursery:
        config = NodeConfig(
            addresses=(random_address(),),
            derp_map=current_map(ctx),
            derp_dialer=relay_dialer(ctx, nursery),
            direct=not ctx.config.block_direct_connections,
        )
        async with (
            open_node(config) as node,
            open_controller(node, "source", number=random_node_id(), direct=config.direct) as controller,
        ):
            dialer = ctx.agent_dialer = AgentDialer(node, controller)
            nursery.start_soon(dialer.drop_idle)
            nursery.start_soon(coordinate_inside, ctx, controller)
            task_status.started()
            await ctx.stopping.wait()
            nursery.cancel_scope.cancel()


async def coordinate_inside(ctx: Context, controller: Controller) -> None:
    """Keep a node of this process coordinated over a pipe into the local coordinator, until cancelled."""
    peer = TailnetPeer(uuid4(), FullAccess())

    @asynccontextmanager
    async def connect(_resume_token: str) -> AsyncIterator[Session]:
        client_end, server_end = pipe_pair()
        async with (
            open_session(server_end, role="server") as server,
            open_session(client_end, role="client", patient=True) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(server.serve, TailnetService(ctx, peer).handlers())
            yield client
            nursery.cancel_scope.cancel()

    await keep_coordinated(controller, connect)


def relay_dialer(ctx: Context, nursery: trio.Nursery) -> DerpDialer:
    """Return a dialer that reaches the local relay in memory, and other relays over the network."""
    relay = ctx.services.relay.derp
    others = RelayDialer(DialPolicy(ctx.access_url, Secret("")))
    if relay.server is None:
        return others
    return InProcessRelayDialer(relay.server.in_memory_dialer(nursery), others, lambda region: region.embedded_relay)
