"""Output to relays, and back-pressure of long relay queues.

Lives here: the region through which a peer is reached now, and pausing its bulk data
(docs/decisions/relay-pushback.md). The queue belongs to the driver (`drivers/derp_client_queue.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from coder.mesh.core.paths.relays import RelayRoutes
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.peers.ip_stack import IpStack
from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.peers.sink import Sink


class RelayOutput:
    """The relayed half of output."""

    __slots__ = ("_paused", "_routes", "_sink", "_stack")

    def __init__(self, routes: RelayRoutes, stack: IpStack, sink: Sink) -> None:
        self._routes = routes
        self._stack = stack
        self._sink = sink
        # Keyed by peer, not by region: a peer whose region changes meanwhile still waits for the queue that paused it.
        self._paused: dict[Peer, int] = {}
        """Peer -> region whose queue its bulk data waits for."""

    def send(self, peer: Peer, packets: Sequence[bytes | memoryview]) -> None:
        """Send through the region the peer was last heard by, else its home; dropped for a peer without either."""
        region = self._routes.region(peer.config.public_key, peer.config.home_derp)
        if not region:
            return
        # Counted as handed over: data that a full queue drops later (drivers/derp_client_queue.py) was still sent to
        # the relay.
        peer.relayed_bytes += sum(map(len, packets))
        # The packets are accepted in any case: the return value only says that more would make the queue longer
        # (docs/decisions/relay-pushback.md).
        is_short = self._sink.relay(region, peer.config.public_key, packets)
        # Not on a direct path: a keepalive or a ping by relay must not stop data that does not use it.
        if not is_short and peer not in self._paused and peer.paths.selector.state is not PathState.DIRECT:
            # Only the stack's data waits. Handshakes and keepalives of the tunnel continue, or the pause would look
            # like a dead peer to the tunnel's timers.
            self._paused[peer] = region
            for address in peer.tunnel.allowed:
                self._stack.pause(address)

    def drained(self, region: int) -> None:
        """Resume the peers that waited for a region's queue."""
        # A copy: resuming removes the peer from the iterated dictionary.
        for peer in [peer for peer, waits_for in self._paused.items() if waits_for == region]:
            self.resume(peer)

    def resume(self, peer: Peer) -> None:
        """Resume the peer's bulk data."""
        if self._paused.pop(peer, None) is not None:
            for address in peer.tunnel.allowed:
                self._stack.resume(address)
