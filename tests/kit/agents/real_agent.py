"""The real agent in the test's own process, with or without a node on the overlay of the server under test."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.base.secret import Secret
from coder.coderd.services.network.derp_map import current_map
from coder.mesh.node import NodeConfig, open_node
from coder.net.policy import DialPolicy
from coder.rpc.errors import RpcClosed
from coder.tailnet import derpmap
from coder.tailnet.addresses import agent_addresses, node_id
from coder.tailnet.controller import open_controller
from coder.tailnet.relay import RelayDialer
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually


@asynccontextmanager
async def running_agent(
    view_context: AgentWorld, policy: DialPolicy, folder: Path, **settings: Any
) -> AsyncIterator[AgentRole]:
    """A whole agent in this process; `settings` are fields of its AgentConfig."""
    folder.mkdir(exist_ok=True)
    token = Secret(view_context.token)
    agent = AgentRole(
        AgentConfig(policy.with_token(token), token, folder, folder, **{"executable": "coder", **settings})
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.run)

        async def connected() -> bool:
            return bool((await view_context.agent())["status"] == "connected")

        await eventually(connected)
        yield agent
        agent.stop()


@contextlib.asynccontextmanager
async def running_overlay_agent(
    view_context: AgentWorld, *, direct: bool = False, services: Mapping[int, Callable[[Any], Awaitable[None]]] = {}
) -> AsyncIterator[Any]:
    """An agent with a real node: echoes on port 7, coordinates for as long as the block lasts.

    `services` serve further ports.
    """
    policy = DialPolicy(view_context.world.url, token=Secret(view_context.token))
    relay = RelayDialer(policy)
    config = NodeConfig(
        addresses=agent_addresses(view_context.agent_id),
        derp_map=derpmap.with_embedded(current_map(view_context.world.ctx), view_context.world.url),
        derp_dialer=relay,
        direct=direct,
    )

    async def echo(stream: Any) -> None:
        async for data in stream:
            await stream.send_all(data)
        await stream.aclose()

    async def coordinate(controller: Any, session: Any) -> None:
        with contextlib.suppress(RpcClosed):
            await controller.run(session)

    number = node_id(view_context.agent_id)
    async with (
        open_node(config) as node,
        open_controller(
            node, "destination", number=number, server_url=view_context.world.url, direct=direct
        ) as controller,
        trio.open_nursery() as nursery,
    ):
        for port, serve in {7: echo, **services}.items():
            nursery.start_soon(trio.serve_listeners, serve, [node.tcp_listen(port)])
        async with connected_agent(view_context) as agent:
            nursery.start_soon(coordinate, controller, agent.session)
            yield controller
            nursery.cancel_scope.cancel()


async def exchange(stream: Any) -> None:
    """Bytes to the echo and back."""
    await stream.send_all(b"over the mesh")
    received = b""
    while len(received) < 13:
        received += await stream.receive_some(100)
    assert received == b"over the mesh"
    await stream.aclose()
