"""Regions of relays: their nodes, dialling and the login.

Lives here: the map, the home region, the node of a region that answered last, the silence its network allows.
derp_connection.py uses the connections. Dialling itself is injected (transport.py): HTTP is outside of the mesh.
Obeys docs/protocol/derp.md, "What a client does".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import trio

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.paths.keepalive import Keepalive
from coder.mesh.core.wire import derp, derp_info
from coder.mesh.drivers.framing import FrameBuffer, limit_unsent
from coder.mesh.drivers.region import first_to_answer
from coder.mesh.drivers.transport import DerpDialer, DerpTransport
from coder.mesh.errors import RelayError

CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class LoggedInNode:
    """A node after our login."""

    node: str
    transport: DerpTransport
    inbox: FrameBuffer
    shared: SharedBox

    async def drop(self) -> None:
        """Close the connection: another node was faster."""
        await trio.aclose_forcefully(self.transport.stream)


class RelayRegions:
    """The regions of a node; outlives connections."""

    def __init__(
        self, dialer: DerpDialer, private_key: PrivateKey, derp_map: DerpMap, random_bytes: Callable[[int], bytes]
    ) -> None:
        self.derp_map = derp_map
        self.home = 0
        self.random = random_bytes
        self._dialer = dialer
        self._private = private_key
        self._worked: dict[int, str] = {}
        """The node of each region that sent its welcome last."""
        self._keepalives: dict[int, Keepalive] = {}

    def keepalive(self, region: int) -> Keepalive:
        """Return the keepalive interval learnt for a region."""
        return self._keepalives.setdefault(region, Keepalive())

    def welcomed(self, region: int, node: str) -> None:
        """Record that a node of the region let us in: it is tried first next time."""
        self._worked[region] = node

    async def reach(self, number: int, unproven: str) -> LoggedInNode:
        """Dial and log in: to the node that worked last, else to another, `unproven` after all others.

        Raises RelayError.
        """
        region = self.derp_map.regions.get(number)
        nodes = region.relay_nodes() if region else ()
        if region is None or not nodes:
            raise RelayError(f"region {number} has no relay")
        last = self._worked.get(number)
        reached = None
        try:
            with trio.move_on_after(CONNECT_TIMEOUT):
                reached = await first_to_answer(
                    sorted(nodes, key=lambda node: (node.name == unproven, node.name != last)),
                    lambda node: self._reach_node(region, node),
                    LoggedInNode.drop,
                )
        except Exception as error:
            # The other nodes of a region may be free.
            requested = error.retry_after if isinstance(error, RelayError) and len(nodes) == 1 else 0.0
            raise RelayError(f"cannot connect to the relay of region {number}", retry_after=requested) from error
        if reached is None:
            raise RelayError(f"no relay of region {number} answered within {CONNECT_TIMEOUT:g} s")
        return reached

    async def _reach_node(self, region: DerpRegion, node: DerpNode) -> LoggedInNode:
        transport = await self._dialer(region, node)
        try:
            limit_unsent(transport.stream)
            inbox = FrameBuffer(transport.stream, transport.leftover)
            return LoggedInNode(node.name, transport, inbox, await self._log_in(transport.stream, inbox))
        except BaseException:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(transport.stream)
            raise

    async def _log_in(self, stream: trio.abc.Stream, inbox: FrameBuffer) -> SharedBox:
        server_key = await inbox.frame()
        if not isinstance(server_key, derp.ServerKey):
            raise WireError("unexpected_frame", "the first frame of a relay is its key")
        private = self._private
        shared = SharedBox(private, server_key.key)
        info = derp_info.seal_client_info(shared, private.public, self.random(NONCE_SIZE), derp_info.ClientInfo())
        await stream.send_all(info.encode())
        return shared
