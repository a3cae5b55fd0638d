"""The server restarts: streams inside the overlay do not notice, agents reconnect."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import trio

from coder.base.secret import Secret
from coder.client.link import open_link
from coder.coderd.app import open_server
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.network.derp_map import current_map
from coder.mesh.node import NodeConfig, open_node
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError, NetError
from coder.rpc.errors import RpcClosed
from coder.tailnet import derpmap
from coder.tailnet.addresses import agent_addresses, node_id
from coder.tailnet.controller import open_controller
from coder.tailnet.relay import RelayDialer
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually, start_workspace
from tests.kit.api.http_clients import http_client
from tests.kit.free_ports import free_port
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import World


@contextlib.asynccontextmanager
async def server_at(port: int, database: str) -> AsyncIterator[World]:
    config = ServerConfig(
        http_address=f"127.0.0.1:{port}",
        postgres_url=Secret(database),
        provisioner_daemons=0,
        dangerous_disable_rate_limits=True,
        derp_server_stun_addresses=("disable",),
    )
    async with open_server(config) as server, http_client(server.url) as client:
        yield World(server, client)


async def echo(stream: Any) -> None:
    with contextlib.suppress(trio.BrokenResourceError):
        async for data in stream:
            await stream.send_all(data)


async def run_agent(
    view_context: AgentWorld, *, direct: bool, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED
) -> None:
    """Run an agent that redials every 200 ms and keeps its node throughout."""
    url = view_context.world.url
    config = NodeConfig(
        addresses=agent_addresses(view_context.agent_id),
        derp_map=derpmap.with_embedded(current_map(view_context.world.ctx), url),
        derp_dialer=RelayDialer(DialPolicy(url, token=Secret(view_context.token))),
        direct=direct,
    )
    number = node_id(view_context.agent_id)
    async with (
        open_node(config) as node,
        open_controller(node, "destination", number=number, server_url=url, direct=direct) as controller,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(trio.serve_listeners, echo, [node.tcp_listen(7)])
        task_status.started()
        while True:
            with contextlib.suppress(RpcClosed, HttpError, NetError, trio.BrokenResourceError):
                async with connected_agent(view_context) as agent:
                    await controller.run(agent.session)
            await trio.sleep(0.2)


async def hold_link(
    view_context: AgentWorld, *, direct: bool, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED
) -> None:
    policy = DialPolicy(view_context.world.url, token=Secret(view_context.world.token))
    async with open_link(policy, view_context.agent_id, direct=direct) as link:
        await link.wait_reachable()
        task_status.started(link)
        await trio.sleep_forever()


async def echo_text(stream: Any, text: bytes) -> None:
    with trio.fail_after(60):
        await stream.send_all(text)
        received = b""
        while len(received) < len(text):
            received += await stream.receive_some(100)
        assert received == text


@pytest.mark.parametrize("direct", [False, True])
async def test_streams_survive_and_agents_return(direct: bool) -> None:
    port = free_port()
    async with fresh_database() as database, trio.open_nursery() as nursery:
        async with server_at(port, database) as world:
            await world.first_user()
            view_context = await start_workspace(world)
            await nursery.start(partial(run_agent, view_context, direct=direct))
            link = await nursery.start(partial(hold_link, view_context, direct=direct))
            stream = await link.connect(7)
            await echo_text(stream, b"before")
        async with server_at(port, database) as world:
            world.token = view_context.world.token
            again = AgentWorld(world, view_context.workspace, view_context.agent_id, view_context.token)

            async def connected() -> bool:
                return bool((await again.agent())["status"] == "connected")

            await eventually(connected)
            await echo_text(stream, b"after")
            assert world.ctx.agent_dialer is not None
            await echo_text(await world.ctx.agent_dialer.dial(view_context.agent_id, 7), b"from the new server")
            nursery.cancel_scope.cancel()
