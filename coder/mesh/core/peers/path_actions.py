"""Executes the decisions of a peer's paths: pings, calls by relay, and updates of the stack.

Lives here: sending disco messages, our own endpoints as published to peers, deadlines of peers' paths.
Does not live here: the decisions (`paths/probing.py`), received disco messages (disco_input.py).
Obeys docs/protocol/disco.md, "Speaking".
"""

from __future__ import annotations

from collections.abc import Iterable

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey, Random
from coder.mesh.core.errors import CryptoError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.mtu import STANDARD
from coder.mesh.core.paths.outstanding_pings import SendPing
from coder.mesh.core.paths.probing import Action
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.paths.timer_queue import TimerQueue
from coder.mesh.core.peers.ip_stack import IpStack
from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.peers.relay_output import RelayOutput
from coder.mesh.core.peers.sink import Sink
from coder.mesh.core.wire import disco
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.core.wire.wireguard import TRANSPORT_OVERHEAD

RELAY_PACKET = 32_640
"""Ours: inner packets for peers with the same stack while the relay carries everything: a relay has no MTU, and most of
the cost of a packet does not depend on its size. Two of them fill a superbuffer; with 8 KB each end worked a third
longer for a megabyte, and the relay twice as long."""
_MAX_STAGED_CALLS = 1024
"""Ours: peers whose call waits for our endpoints; peers beyond that are not called, only pinged."""


class PathActions:
    """Path actions for all peers of an endpoint."""

    __slots__ = (
        "_disco_private",
        "_endpoints_fresh_until",
        "_mtu",
        "_node_key",
        "_own_endpoints",
        "_random",
        "_relay",
        "_sink",
        "_stack",
        "_waiting_calls",
        "disco_key",
        "timer_queue",
    )

    def __init__(
        self,
        node_key: PublicKey,
        disco_key: PrivateKey,
        stack: IpStack,
        sink: Sink,
        relay: RelayOutput,
        random: Random,
        mtu: int,
    ) -> None:
        self.disco_key = disco_key.public
        self.timer_queue: TimerQueue[Peer] = TimerQueue()
        self._node_key = node_key
        self._disco_private = disco_key
        self._stack = stack
        self._sink = sink
        self._relay = relay
        self._random = random
        self._mtu = mtu
        self._own_endpoints: tuple[UdpAddress, ...] = ()
        self._endpoints_fresh_until = 0.0
        self._waiting_calls: dict[Peer, None] = {}

    # -- our own addresses ------------------------------------------------------------------------------------------
    def set_own_endpoints(self, endpoints: Iterable[Address], now: float, fresh_for: float) -> None:
        """Set the endpoints for call-me-maybe, and for how many seconds from now on they are valid."""
        # In wire format, as each call contains all of them.
        self._own_endpoints = tuple(UdpAddress(*address) for address in endpoints)
        self._endpoints_fresh_until = now + fresh_for
        # Taken as a whole first: a peer whose call has to wait once more is added to the new set.
        waiting, self._waiting_calls = self._waiting_calls, {}
        for peer in waiting:
            self._call(peer, now)

    def own_endpoints_changed(self) -> None:
        """Invalidate our known endpoints after a network change."""
        self._endpoints_fresh_until = 0.0

    def forget(self, peer: Peer) -> None:
        """Forget a removed peer."""
        self.timer_queue.set(peer, None)
        self._waiting_calls.pop(peer, None)

    # -- a peer's paths ---------------------------------------------------------------------------------------------
    def carry_out(self, peer: Peer, actions: list[Action], now: float) -> None:
        """Execute a decision of a peer's paths, and record their next deadline."""
        for action in actions:
            if not isinstance(action, SendPing):
                self._call(peer, now)
                continue
            sealed = self.seal(peer, disco.DiscoPing(action.tx, self._node_key, action.size - disco.ENVELOPE))
            # A peer without disco is never pinged: it has no key to seal with.
            if not sealed:
                continue
            if action.to is None:
                self._relay.send(peer, [sealed])
            # Above all EMSGSIZE: the operating system knows the next link's size, so there is no need to wait for a
            # timeout.
            elif not self._sink.udp([sealed], action.to):
                peer.paths.on_ping_refused(action.tx, now)
        self.settle(peer, now)

    def settle(self, peer: Peer, now: float) -> None:
        """Record the next deadline after a change of a peer's paths, and update the stack."""
        # After every step: the paths report their next deadline, so no scan over all peers is needed.
        self.timer_queue.set(peer, peer.paths.next_wake())
        state, carries = peer.paths.selector.state, peer.paths.carries
        if state is not peer.seen_state:
            peer.seen_state, peer.seen_carries = state, carries
            # The relay's queue does not concern this peer any more.
            if state is PathState.DIRECT:
                self._relay.resume(peer)
            self.size_packets(peer)
            self.path_changed(peer, now)
            best = peer.paths.selector.best
            self._sink.path_changed(peer.config.public_key, state, best.address if best else None)
        elif carries != peer.seen_carries:
            is_narrower = carries < peer.seen_carries
            peer.seen_carries = carries
            self.size_packets(peer)
            # Data in flight may be too large for the path now. The other direction loses nothing and needs no
            # retransmission.
            if is_narrower:
                self.path_changed(peer, now)

    def size_packets(self, peer: Peer) -> None:
        """Set the stack's size of inner packets to the peer."""
        size: int | None = None
        carries = peer.seen_carries
        peer.largest = max(self._mtu + TRANSPORT_OVERHEAD, carries)
        if peer.paths.selector.state is PathState.RELAYED:
            size = RELAY_PACKET
        elif carries < STANDARD:
            peer.largest = carries
            size = (carries - TRANSPORT_OVERHEAD) & ~15  # the padding needs room as well
        elif carries > STANDARD:
            size = max(carries - TRANSPORT_OVERHEAD, self._mtu)
        for address in peer.tunnel.allowed:
            self._stack.set_mtu_to(address, size)

    def path_changed(self, peer: Peer, now: float) -> None:
        """Let the stack retransmit now instead of by its timers: recent data may be lost."""
        for address in peer.tunnel.allowed:
            self._stack.path_changed(address, now)

    def _call(self, peer: Peer, now: float) -> None:
        if peer.box is None:
            return
        # Endpoints a router has dropped meanwhile would send the peer to a closed port, and waste its retries.
        if now < self._endpoints_fresh_until:
            self._relay.send(peer, [self.seal(peer, disco.CallMeMaybe(self._own_endpoints))])
        elif len(self._waiting_calls) < _MAX_STAGED_CALLS:
            was_empty = not self._waiting_calls
            self._waiting_calls[peer] = None
            # One measurement serves all waiting peers.
            if was_empty:
                self._sink.needs_endpoints()

    def box(self, key: PublicKey) -> SharedBox | None:
        """Return the box for a peer with this disco key; None: the peer has no disco."""
        if key.is_zero:
            return None
        try:
            # Created once for a peer: the key agreement costs more than a message.
            return SharedBox(self._disco_private, key)
        except CryptoError:
            return None  # an unusable key: the peer is reached by relay, like a peer without disco

    def seal(self, peer: Peer, message: disco.Message) -> bytes:
        """Return a disco packet; empty for a peer without disco."""
        if peer.box is None:
            return b""
        return disco.seal(peer.box, self.disco_key, self._random(NONCE_SIZE), message)
