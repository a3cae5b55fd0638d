"""Input of disco messages: their senders, what they prove, and immediate answers.

Lives here: opening, and handing each message to the paths of its peer.
Does not live here: messages we send unprompted (path_actions.py).
Obeys docs/protocol/disco.md, "Hearing".
"""

from __future__ import annotations

from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.peermap import PeerMap
from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.peers.path_actions import PathActions
from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.peers.sink import Sink
from coder.mesh.core.wire import disco
from coder.mesh.core.wire.address import UdpAddress

_PSEUDO_RELAY = "127.3.3.40"
"""Source address reported in the pong to a relayed ping; the port is the region."""


class DiscoInput:
    """Disco input for all peers of an endpoint. `peers` are the endpoint's, by node key."""

    __slots__ = ("_actions", "_by_address", "_by_disco", "_direct", "_peers", "_sink")

    def __init__(
        self, peers: dict[bytes, Peer], by_address: PeerMap[Peer], actions: PathActions, sink: Sink, *, direct: bool
    ) -> None:
        self._peers = peers
        self._by_address = by_address
        self._actions = actions
        self._sink = sink
        self._direct = direct
        self._by_disco: dict[bytes, list[Peer]] = {}

    def add(self, peer: Peer, key: PublicKey) -> None:
        """Assign messages with this disco key to the peer."""
        self._by_disco.setdefault(key, []).append(peer)

    def remove(self, peer: Peer) -> None:
        """Stop assigning messages with the peer's configured disco key to it."""
        key = peer.config.disco_key
        others = self._by_disco[key]
        others.remove(peer)
        if not others:
            del self._by_disco[key]
        self._by_address.forget(peer)

    def receive(self, datagram: bytes, origin: Address | int, relayed_by: bytes, now: float) -> None:
        """Process a datagram from a UDP address (direct), or from a region and the node key that the relay reports."""
        # A node without direct paths opens no socket; a datagram that claims to come from one is refused anyway.
        if not self._direct and not relayed_by:
            return
        try:
            sender = disco.sender_untrusted(datagram)
            peers = self._by_disco.get(sender)
            # Several peers may claim one disco key. The box depends on that key and ours alone, so the first peer's box
            # opens for all.
            if not peers or peers[0].box is None:
                return
            message = disco.open_untrusted(peers[0].box, datagram)
        # Neither answered nor logged: a sender of datagrams could fill either.
        except (WireError, CryptoError):
            return
        # With several peers of one disco key the ping itself names its sender: an owner of the key may speak for each.
        peer = peers[0]
        if isinstance(message, disco.DiscoPing):
            claimed = self._peers.get(message.node_key)
            if claimed in peers:
                peer = claimed
            self._on_ping(peer, message, origin, now)
        elif isinstance(message, disco.DiscoPong):
            self._on_pong(peers, message, origin, now)
        # docs/protocol/disco.md: call-me-maybe is accepted by relay only. The relay has authenticated the sender's node
        # key; a UDP source has proven nothing yet.
        elif relayed_by:
            claimed = self._peers.get(relayed_by)
            if claimed in peers:
                self._actions.carry_out(claimed, claimed.paths.on_call_me_maybe(message.endpoints, now), now)

    def _on_ping(self, peer: Peer, ping: disco.DiscoPing, origin: Address | int, now: float) -> None:
        seen = (ping.tx_id, origin)
        # A ping that came by two paths is two pings; the same one twice from one address is a duplicate of the network.
        if peer.last_ping == seen:
            return
        # Only the last ping is remembered: a duplicate behind another ping costs one more pong, and no harm.
        peer.last_ping = seen
        if isinstance(origin, int):
            pong = disco.DiscoPong(ping.tx_id, UdpAddress(_PSEUDO_RELAY, origin))
            # Back through the same region, not the peer's home: the ping tests whether this region reaches us.
            self._sink.relay(origin, peer.config.public_key, [self._actions.seal(peer, pong)])
            return
        # The box has authenticated the sender. A recorded ping replayed from elsewhere would be learnt as well: it
        # gains an address from which WireGuard is accepted, and data from there still has to open.
        self._by_address.learn(origin, peer, answered=False)
        # As large as the ping: the peer measures the path in both directions (paths/mtu.py).
        self._sink.udp(
            [self._actions.seal(peer, disco.DiscoPong(ping.tx_id, UdpAddress(*origin), ping.payload))], origin
        )
        self._actions.carry_out(peer, peer.paths.on_ping(origin, now, ping.size), now)

    def _on_pong(self, peers: list[Peer], pong: disco.DiscoPong, origin: Address | int, now: float) -> None:
        # By relay there is no address to learn, only that the peer is alive and its latency.
        source = None if isinstance(origin, int) else origin
        for peer in peers:
            # Twelve random bytes: only a peer that opened our ping can repeat them, so they alone identify the answer's
            # peer.
            answer = peer.paths.on_pong(pong.tx_id, source, now, disco.ENVELOPE + pong.payload)
            if answer is False:
                continue
            if source is not None:
                # Proved by an answer to our own ping, which a recorded packet cannot be.
                self._by_address.learn(source, peer, answered=True)
            self._actions.settle(peer, now)
            if isinstance(answer, PingAnswered):
                self._sink.ping_answered(answer, peer.config.public_key, origin if source is None else 0)  # type: ignore[arg-type]
            return
