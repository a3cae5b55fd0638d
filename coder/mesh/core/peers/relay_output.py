"""Packets on their way to a relay, and peers that wait while its queue is long.

Lives here: through which region a peer is reached now, and holding its bulk data back
(docs/decisions/relay-pushback.md). The queue is the driver's (`drivers/derp_client_queue.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from coder.mesh.core.paths.relays import RelayRoutes
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.peers.ip_stack import IpStack
from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.peers.sink import Sink


class RelayOutput:
    """The relayed half of sending."""

    __slots__ = ("_paused", "_routes", "_sink", "_stack")

    def __init__(self, routes: RelayRoutes, stack: IpStack, sink: Sink) -> None:
        self._routes = routes
        self._stack = stack
        self._sink = sink
        # By peer, not by region: one whose region changes meanwhile is still waiting for the queue it was stopped for.
        self._paused: dict[Peer, int] = {}
        """Peers whose bulk data waits, and for the queue of which region."""

    def send(self, peer: Peer, packets: Sequence[bytes | memoryview]) -> None:
        """Through the region the peer was last heard by, else its home; dropped for a peer without either."""
        region = self._routes.region(peer.config.public_key, peer.config.home_derp)
        if not region:
            return
        # Counted as handed over: what a full queue drops later (drivers/derp_client_queue.py) was still meant to go by
        # relay.
        peer.relayed_bytes += sum(map(len, packets))
        # The packets are taken in any case: the sign only says that more would make the queue longer
        # (docs/decisions/relay-pushback.md).
        is_short = self._sink.relay(region, peer.config.public_key, packets)
        # Not where the path is direct: a keepalive or a ping by relay must not stop data that does not go there.
        if not is_short and peer not in self._paused and peer.paths.selector.state is not PathState.DIRECT:
            # Only what the stack has to send waits. Handshakes and keepalives are the tunnel's and go on, or the pause
            # would look like a dead peer to the tunnel's timers.
            self._paused[peer] = region
            for address in peer.tunnel.allowed:
                self._stack.pause(address)

    def drained(self, region: int) -> None:
        """A region's queue is short again."""
        # A copy: resuming takes the peer out of what is walked.
        for peer in [peer for peer, waits_for in self._paused.items() if waits_for == region]:
            self.resume(peer)

    def resume(self, peer: Peer) -> None:
        """Its bulk data need not wait."""
        if self._paused.pop(peer, None) is not None:
            for address in peer.tunnel.allowed:
                self._stack.resume(address)
