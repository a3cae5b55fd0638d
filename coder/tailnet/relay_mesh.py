"""Links to the other relays of the same deployment, or of the same workspace proxy, at their announced addresses.

`mesh/drivers/derp_mesh.py` has the protocol of a link; the addresses come from the database or from the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.base.secret import Secret
from coder.mesh.derp_map import DerpNode, DerpRegion
from coder.mesh.relay import DerpServer, DerpTransport, keep_meshed
from coder.net.policy import DialPolicy
from coder.tailnet.relay import RelayDialer

REPLICA_HEADER = "Coder-Replica"
"""Ours: the process meant, as several of one machine share an address."""
RETRY_DELAY = 10.0
"""Seconds until a link that could not be opened is retried."""

_log = get_logger("relay")


class RelayMesh:
    """Links to other relays, one for each."""

    def __init__(self) -> None:
        self._links: dict[UUID, tuple[str, trio.CancelScope]] = {}

    def set_others(
        self, server: DerpServer, mesh_key: str, addresses: Mapping[UUID, str], nursery: trio.Nursery
    ) -> None:
        """Open and close links so that there is one to each address, by process."""
        for key, (url, scope) in list(self._links.items()):
            if addresses.get(key) != url:
                scope.cancel()
                del self._links[key]
        for key, url in addresses.items():
            if key not in self._links:
                scope = trio.CancelScope()
                self._links[key] = (url, scope)
                nursery.start_soon(_keep_linked, server, key, url, mesh_key, scope)


async def _keep_linked(server: DerpServer, key: UUID, url: str, mesh_key: str, scope: trio.CancelScope) -> None:
    with scope:
        while True:
            try:
                await _link_once(server, key, url, mesh_key)
            except Exception as error:
                # Another process's bad address must not end this one.
                _log.warn("linking another relay failed", url=url, error=error)
            await trio.sleep(RETRY_DELAY)


async def _link_once(server: DerpServer, key: UUID, url: str, mesh_key: str) -> None:
    policy = DialPolicy(url, Secret(""), headers=((REPLICA_HEADER, str(key)),))
    dialer = RelayDialer(policy)
    node = DerpNode(
        name="replica",
        region_id=0,
        host_name=policy.origin.hostname or "",
        derp_port=policy.origin.port or (443 if policy.origin.scheme == "https" else 80),
        force_http=policy.origin.scheme != "https",
    )
    region = DerpRegion(0, "replica", "Replica", (node,), embedded_relay=True)

    async def dial() -> DerpTransport:
        return await dialer(region, node)

    await keep_meshed(server, dial, mesh_key)
