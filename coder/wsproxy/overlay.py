"""Overlay node of the proxy: coordinated by the server, connected to the proxy's own relay in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from coder.api.proxies.proxies import RegisterWorkspaceProxyResponse
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.secret import Secret
from coder.mesh.derp_map import DerpMap
from coder.mesh.node import NodeConfig, open_node
from coder.mesh.relay import DerpDialer
from coder.net.errors import NetError
from coder.net.masking import masked
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.session import Session, open_session
from coder.tailnet import derpmap
from coder.tailnet.addresses import random_address, random_node_id
from coder.tailnet.agent_dialer import AgentDialer
from coder.tailnet.controller import Controller, open_controller
from coder.tailnet.in_process_relay import InProcessRelayDialer
from coder.tailnet.reconnect import keep_coordinated
from coder.tailnet.relay import RelayDialer
from coder.wsproxy.primary import COORDINATE, is_token_refused
from coder.wsproxy.world import ProxyWorld

_log = get_logger("overlay")


async def run_node(world: ProxyWorld, registration: RegisterWorkspaceProxyResponse) -> None:
    """Open the node and set `world.agent_dialer`; run until cancelled."""
    derp_map = _relay_map(world, registration)
    direct = not (world.config.server.block_direct_connections or await _is_direct_blocked(world))
    async with trio.open_nursery() as nursery:
        config = NodeConfig(
            addresses=(random_address(),),
            derp_map=derp_map,
            derp_dialer=_relay_dialer(world, registration, nursery),
            direct=direct,
        )
        async with (
            open_node(config) as node,
            open_controller(
                node, "source", number=random_node_id(), server_url=world.primary.url, direct=direct
            ) as controller,
        ):
            dialer = AgentDialer(node, controller)
            nursery.start_soon(dialer.drop_idle)
            nursery.start_soon(_coordinate, world, controller)
            world.agent_dialer = dialer
            try:
                await trio.sleep_forever()
            finally:
                world.agent_dialer = None


def _relay_map(world: ProxyWorld, registration: RegisterWorkspaceProxyResponse) -> DerpMap:
    try:
        return derpmap.with_embedded(derpmap.from_json(registration.derp_map), world.primary.url)
    except ValueError as error:
        raise CoderError(
            "bad_derp_map",
            f"{masked(world.primary.url)} sent no usable relays to this workspace proxy",
            "Check that the server's release is compatible, and its relays in --derp-config-path.",
        ) from error


async def _is_direct_blocked(world: ProxyWorld) -> bool:
    try:
        return await world.primary.is_direct_blocked()
    except NetError as error:
        _log.warn("the server did not report whether direct paths are blocked; using relays only", reason=error.message)
        return True
    except CoderError:
        return False  # an upstream server, which answers only users


async def _coordinate(world: ProxyWorld, controller: Controller) -> None:
    @asynccontextmanager
    async def connect(_resume_token: str) -> AsyncIterator[Session]:
        try:
            socket = await connect_websocket(world.primary.policy, COORDINATE)
        except CoderError as error:
            if is_token_refused(error):
                world.registration.check_now()
            raise
        try:
            async with open_session(socket, "client", patient=True) as session:
                yield session
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(socket)

    await keep_coordinated(controller, connect)


def _relay_dialer(world: ProxyWorld, registration: RegisterWorkspaceProxyResponse, nursery: trio.Nursery) -> DerpDialer:
    """Return a dialer that reaches the proxy's own region in memory and others over the network."""
    remote_dialer = RelayDialer(
        DialPolicy(world.primary.url, Secret("")), force_websockets=registration.derp_force_websockets
    )
    if world.relay is None:
        return remote_dialer
    inside, own = world.relay.in_memory_dialer(nursery), registration.derp_region_id
    return InProcessRelayDialer(inside, remote_dialer, lambda region: region.region_id == own)
