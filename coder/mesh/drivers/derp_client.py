"""Relay connections of a node: one per region, the home one for ever, others while they are used.

Lives here: which regions have a connection. derp_connection.py runs a connection, derp_regions.py reaches a region.
`core/paths/relays.py` chooses the region of a packet; frames are `core/wire/derp.py`.
Obeys docs/protocol/derp.md, "What a client does".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.paths.derpmap import DerpMap
from coder.mesh.core.paths.relays import IDLE_CLOSE, IDLE_SCAN
from coder.mesh.core.wire import derp
from coder.mesh.drivers.derp_connection import RelayConnection, RelayEvents
from coder.mesh.drivers.derp_regions import RelayRegions
from coder.mesh.drivers.framing import relay_frames
from coder.mesh.drivers.transport import DerpDialer


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """Status of a region's connection, for people."""

    region: int
    connected: bool
    is_home: bool
    problem: str
    """Reason for a missing connection, or the relay's health message; empty when healthy."""
    forced_websocket: str
    dropped: int
    transport: str = ""
    """Kind of connection: `upgrade`, `websocket` or `stream`."""
    keepalive: float = 0.0
    """Seconds of silence after which we send a keepalive."""


class RelayPool:
    """All relay connections of a node."""

    def __init__(
        self,
        nursery: trio.Nursery,
        dialer: DerpDialer,
        private_key: PrivateKey,
        derp_map: DerpMap,
        events: RelayEvents,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._regions = RelayRegions(dialer, private_key, derp_map, random_bytes)
        self._events = events
        self._nursery = nursery
        self._connections: dict[int, RelayConnection] = {}

    def send(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        """Queue packets for a peer, and connect if necessary. The packets are copied.

        Returns False when the queue is long: `relay_drained` is called when it is short again.
        """
        connection = self._connections.get(region)
        if connection is None:
            if region not in self._regions.derp_map.regions:
                return True
            connection = self._open(region)
        return connection.push(len(packets), relay_frames(derp.SEND_PACKET, to, packets))

    def set_home(self, region: int) -> None:
        """Keep a connection to this region for ever."""
        if region == self._regions.home:
            return
        old, self._regions.home = self._regions.home, region
        for number, preferred in ((old, False), (region, True)):
            connection = self._connections.get(number)
            if connection is not None and connection.connected:
                connection.put_control(derp.NotePreferred(preferred).encode())
        if region and region not in self._connections:
            self._open(region)

    def set_map(self, derp_map: DerpMap) -> None:
        """Use another map; close connections to regions that changed or vanished."""
        old, self._regions.derp_map = self._regions.derp_map, derp_map
        for number in list(self._connections):
            if old.regions.get(number) != derp_map.regions.get(number):
                self._connections[number].scope.cancel()

    def check(self) -> None:
        """Check all connections after a network change: one without a pong within three seconds is reconnected."""
        for connection in self._connections.values():
            if connection.connected:
                self._nursery.start_soon(connection.check)
            else:
                connection.retry_now.set()

    def forced_websockets(self) -> dict[int, str]:
        """Return region -> why its connection uses a WebSocket."""
        return {r: c.forced_websocket for r, c in self._connections.items() if c.forced_websocket}

    def is_connected(self, region: int) -> bool:
        """Return whether packets for this region leave immediately."""
        connection = self._connections.get(region)
        return connection is not None and connection.connected

    def status(self) -> list[RelayStatus]:
        """Return the status of every connection."""
        return [
            RelayStatus(
                c.region,
                c.connected,
                c.region == self._regions.home,
                c.problem,
                c.forced_websocket,
                c.queue.dropped,
                c.transport_kind,
                self._regions.keepalive(c.region).interval,
            )
            for c in self._connections.values()
        ]

    async def close_idle(self) -> None:
        """Close unused connections, for ever."""
        while True:
            await trio.sleep(IDLE_SCAN)
            deadline = trio.current_time() - IDLE_CLOSE
            for connection in list(self._connections.values()):
                if connection.region != self._regions.home and connection.used <= deadline:
                    connection.scope.cancel()

    def _open(self, region: int) -> RelayConnection:
        connection = self._connections[region] = RelayConnection(region, self._regions, self._events)
        self._nursery.start_soon(self._run, connection)
        return connection

    async def _run(self, connection: RelayConnection) -> None:
        await connection.run()
        if self._connections.get(connection.region) is not connection:
            return
        del self._connections[connection.region]
        home = self._regions.home
        if connection.region == home and home in self._regions.derp_map.regions:
            self._open(home)
