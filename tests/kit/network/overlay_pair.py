"""Two nodes of the overlay that know each other, with a relay in memory or on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any

import trio
import trio.testing

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.description import OverlayAddress, TraceFields
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.transport import DerpDialer, DerpTransport
from coder.mesh.node import Node, NodeConfig, PeerConfig, open_node

REGION = 999
Trace = Callable[[str, TraceFields], None]


def address(number: int) -> IPv6Address:
    """Overlay address of the numbered test node."""
    return IPv6Address(f"fd7a:115c:a1e0::{number:x}")


def one_region(host: str = "relay.test", port: int = 443, stun_port: int = -1) -> DerpMap:
    """A map with the embedded relay only; its STUN server, if any, is on the same host."""
    node = DerpNode(f"{REGION}b", REGION, host, derp_port=port, stun_port=stun_port, force_http=True)
    return DerpMap({REGION: DerpRegion(REGION, "coder", "Coder Embedded Relay", (node,), embedded_relay=True)})


async def dial_bare(_region: DerpRegion, node: DerpNode, /) -> DerpTransport:
    """A dialer for `serve_bare`: TCP without any HTTP."""
    return DerpTransport(await trio.open_tcp_stream(node.host_name, node.derp_port))


async def serve_bare(
    server: DerpServer, host: str = "127.0.0.1", *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """The relay on a loopback TCP port without HTTP; starts with the port."""
    (listener,) = await trio.open_tcp_listeners(0, host=host)
    task_status.started(listener.socket.getsockname()[1])
    await trio.serve_listeners(server.serve_connection, [listener])


def introduce(one: Node, two: Node, *, keepalive: bool = False, endpoints: bool = True) -> None:
    """Install `two` as a peer of `one`."""
    info = two.self_info
    one.set_peer(
        PeerConfig(
            info.public_key,
            info.disco_key,
            info.addresses,
            info.preferred_derp or REGION,
            info.endpoints if endpoints else (),
            keepalive,
        )
    )


@dataclass
class Pair:
    """Two nodes and their relay."""

    one: Node
    two: Node
    relay: DerpServer

    @property
    def addresses(self) -> tuple[OverlayAddress, OverlayAddress]:
        return self.one.self_info.addresses[0], self.two.self_info.addresses[0]


@asynccontextmanager
async def node_pair(
    *, direct: bool = True, endpoints: bool = True, dialer: DerpDialer | None = None, trace: Trace | None = None
) -> AsyncIterator[Pair]:
    """Two nodes in this process, introduced to each other."""
    relay = DerpServer(PrivateKey(bytes([9]) * 32))
    async with trio.open_nursery() as nursery:
        dial = dialer or relay.in_memory_dialer(nursery)
        config: dict[str, Any] = {"derp_map": one_region(), "derp_dialer": dial, "direct": direct, "trace": trace}
        async with (
            open_node(NodeConfig((address(1),), **config)) as one,
            open_node(NodeConfig((address(2),), **config)) as two,
        ):
            for node in (one, two):
                while not node.self_info.preferred_derp or (direct and not node.self_info.endpoints):
                    await trio.testing.wait_all_tasks_blocked()
            introduce(one, two, endpoints=endpoints)
            introduce(two, one, endpoints=endpoints)
            yield Pair(one, two, relay)
        nursery.cancel_scope.cancel()
