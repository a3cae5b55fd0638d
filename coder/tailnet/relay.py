"""How the mesh reaches relays: `GET /derp` upgraded, or a WebSocket where proxies refuse the upgrade.

One `RelayDialer` per node; it is the mesh's DerpDialer and LatencyProbe. A region whose plain upgrade failed for a
reason of HTTP stays on WebSockets for the life of the process (derp-disco-stun section 2).
"""

from __future__ import annotations

from dataclasses import replace

import trio

from coder.mesh.core.paths.derpmap import DEFAULT_DERP_PORT, DerpNode, DerpRegion
from coder.mesh.drivers.transport import DerpTransport
from coder.mesh.errors import RelayError
from coder.net.errors import HttpError, NetError
from coder.net.policy import DialPolicy


class RelayDialer:
    """Dials relay nodes by the rules of `policy`, whose URL and token are those of the server.

    The token is sent to the embedded relay only: other relays are somebody else's machines.
    """

    def __init__(self, policy: DialPolicy, *, force_websockets: bool = False) -> None:
        self._policy = policy
        self._force_websockets = force_websockets
        self._forced: dict[int, str] = {}

    def forced_websockets(self) -> dict[int, str]:
        """Region -> why WebSockets are used there."""
        return dict(self._forced)

    def force_websockets(self, on: bool) -> None:
        """The server's wish (manifest), for connections made from now on."""
        self._force_websockets = on

    async def __call__(self, region: DerpRegion, node: DerpNode) -> DerpTransport:
        """Raises RelayError."""
        policy = self._policy_of(region, node)
        reason = "forced by configuration" if self._force_websockets else self._forced.get(region.region_id, "")
        try:
            if reason:
                return await self._websocket(policy, reason)
            return await self._upgrade(policy)
        except _UpgradeRefused as refused:
            self._forced[region.region_id] = refused.reason
        except (NetError, HttpError) as error:
            raise RelayError(f"relay {region.region_code}: {error.message}") from error
        try:
            return await self._websocket(policy, self._forced[region.region_id])
        except (NetError, HttpError) as error:
            raise RelayError(f"relay {region.region_code}: {error.message}") from error

    async def probe(self, region: DerpRegion, node: DerpNode) -> float:
        """Seconds of one `GET /derp/latency-check` on a warm connection. Raises RelayError."""
        from coder.net.http1 import HttpClient

        try:
            async with HttpClient(replace(self._policy_of(region, node), token=None)) as client:
                await client.request("GET", "/derp/latency-check")  # pays for the connection
                started = trio.current_time()
                await client.request("GET", "/derp/latency-check")
                return trio.current_time() - started
        except (NetError, HttpError) as error:
            raise RelayError(f"relay {region.region_code}: {error.message}") from error

    def _policy_of(self, region: DerpRegion, node: DerpNode) -> DialPolicy:
        scheme = "http" if node.force_http else "https"
        host = f"[{node.host_name}]" if ":" in node.host_name else node.host_name
        port = node.derp_port or DEFAULT_DERP_PORT
        policy = replace(self._policy, url=f"{scheme}://{host}:{port}")
        if region.embedded_relay:
            return policy
        return replace(policy, token=None, headers=(), insecure=policy.insecure or node.insecure_for_tests)

    async def _upgrade(self, policy: DialPolicy) -> DerpTransport:
        from coder.net.websocket import connect_upgrade

        try:
            stream, headers, leftover = await connect_upgrade(policy, "/derp", "DERP")
        except HttpError as error:
            # The answer came from something that speaks HTTP but does not know this upgrade: a proxy, most likely.
            if error.status < 500 and error.status not in {401, 403, 404}:
                raise _UpgradeRefused(f"the upgrade was answered with status {error.status}") from error
            raise
        if headers.get("upgrade", "").lower() != "derp":
            await trio.aclose_forcefully(stream)
            raise _UpgradeRefused(f"the upgrade was answered as {headers.get('upgrade', 'nothing')!r}")
        return DerpTransport(stream, leftover)

    async def _websocket(self, policy: DialPolicy, reason: str) -> DerpTransport:
        from coder.net.websocket import connect_websocket

        return DerpTransport(await connect_websocket(policy, "/derp", subprotocols=("derp",)), b"", reason)


class _UpgradeRefused(Exception):  # noqa: N818 - never leaves this file
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
