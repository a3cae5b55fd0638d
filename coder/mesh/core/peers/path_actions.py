"""Carries out what a peer's paths decided: pings, calls by relay, and what the stack has to know of the outcome.

Lives here: speaking disco, our own addresses as peers are told them, when a peer's paths want to be asked again.
Does not live here: what is decided (`paths/probing.py`), what others say by disco (disco_input.py).
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
"""Ours: inner packets for peers of our own kind while the relay carries everything: a relay has no MTU, and most of
the cost of a packet does not depend on its size. Two of them fill a superbuffer; with 8 KB each end worked a third
longer for a megabyte, and the relay twice as long."""
_MAX_STAGED_CALLS = 1024
"""Ours: peers whose call waits for our addresses; beyond that they are not called, only pinged."""


class PathActions:
    """For all peers of one endpoint."""

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
        """What peers are told in call-me-maybe, and for how many seconds from now on it may be told."""
        # In the wire's form, as each call has all of them.
        self._own_endpoints = tuple(UdpAddress(*address) for address in endpoints)
        self._endpoints_fresh_until = now + fresh_for
        # Taken as a whole first: a peer whose call has to wait once more is put into the new one.
        waiting, self._waiting_calls = self._waiting_calls, {}
        for peer in waiting:
            self._call(peer, now)

    def own_endpoints_changed(self) -> None:
        """What we know of our addresses may be told to nobody any more."""
        self._endpoints_fresh_until = 0.0

    def forget(self, peer: Peer) -> None:
        """The peer is gone."""
        self.timer_queue.set(peer, None)
        self._waiting_calls.pop(peer, None)

    # -- a peer's paths ---------------------------------------------------------------------------------------------
    def carry_out(self, peer: Peer, actions: list[Action], now: float) -> None:
        """Carry out what a peer's paths decided, and note when they want to be asked again."""
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
            # EMSGSIZE above all: our own system knows the next link's size, and need not be asked by silence.
            elif not self._sink.udp([sealed], action.to):
                peer.paths.on_ping_refused(action.tx, now)
        self.settle(peer, now)

    def settle(self, peer: Peer, now: float) -> None:
        """After a change of a peer's paths: when to look again, and what the stack should know."""
        # After every step: paths answer when they want to be asked, so that nobody walks all peers to find out.
        self.timer_queue.set(peer, peer.paths.next_wake())
        state, carries = peer.paths.selector.state, peer.paths.carries
        if state is not peer.seen_state:
            peer.seen_state, peer.seen_carries = state, carries
            # The relay's queue is no longer this peer's affair.
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
            # What is under way may be too large for the path now. The other direction loses nothing and needs no
            # resending.
            if is_narrower:
                self.path_changed(peer, now)

    def size_packets(self, peer: Peer) -> None:
        """Tell the stack how large inner packets to the peer may be."""
        size: int | None = None
        carries = peer.seen_carries
        peer.largest = max(self._mtu + TRANSPORT_OVERHEAD, carries)
        if peer.paths.selector.state is PathState.RELAYED:
            size = RELAY_PACKET
        elif carries < STANDARD:
            peer.largest = carries
            size = (carries - TRANSPORT_OVERHEAD) & ~15  # the padding has to fit as well
        elif carries > STANDARD:
            size = max(carries - TRANSPORT_OVERHEAD, self._mtu)
        for address in peer.tunnel.allowed:
            self._stack.set_mtu_to(address, size)

    def path_changed(self, peer: Peer, now: float) -> None:
        """What was sent lately may be lost: let the stack find out now instead of by its timers."""
        for address in peer.tunnel.allowed:
            self._stack.path_changed(address, now)

    def _call(self, peer: Peer, now: float) -> None:
        if peer.box is None:
            return
        # Addresses a router has forgotten meanwhile would send the peer after a closed port, and use up its patience.
        if now < self._endpoints_fresh_until:
            self._relay.send(peer, [self.seal(peer, disco.CallMeMaybe(self._own_endpoints))])
        elif len(self._waiting_calls) < _MAX_STAGED_CALLS:
            was_empty = not self._waiting_calls
            self._waiting_calls[peer] = None
            # One measurement serves everybody who waits for it.
            if was_empty:
                self._sink.wants_endpoints()

    def box(self, key: PublicKey) -> SharedBox | None:
        """For a peer with this disco key; None: it does not speak disco."""
        if key.is_zero:
            return None
        try:
            # Made once for a peer: the agreement costs more than a message.
            return SharedBox(self._disco_private, key)
        except CryptoError:
            return None  # an unusable key: the peer is reached by relay, like one that speaks no disco

    def seal(self, peer: Peer, message: disco.Message) -> bytes:
        """A disco packet; empty for a peer that speaks no disco."""
        if peer.box is None:
            return b""
        return disco.seal(peer.box, self.disco_key, self._random(NONCE_SIZE), message)
